package handlers

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
)

// exampleNames has a value for each parameter in a path: the name of an object
// in the demo.
var exampleNames = map[string]string{
	"job_id": "12", "node_name": "n1", "partition_name": "long", "reservation_name": "maint", "cluster_name": "demo",
	"qos": "fast", "account_name": "lab", "name": "alice",
}

// eachParameter calls the function visit for every query parameter of every GET
// in every version.
func eachParameter(visit func(e *api.Endpoint, v schema.View, path string, p schema.Property)) {
	for _, e := range api.Endpoints {
		for _, version := range api.Versions {
			if e.Method != http.MethodGet || !e.In(version) || e.Text {
				continue
			}
			view := schema.View{Version: version, Spelling: schema.Slurm}
			if e.SchedOnly {
				view.Spelling = schema.Sched
			}
			path := e.URL(view)
			for name, value := range exampleNames {
				path = strings.ReplaceAll(path, "{"+name+"}", value)
			}
			for _, p := range e.Params.Shape(view).Fields {
				if !e.InPath(p.Name) {
					visit(e, view, path, p)
				}
			}
		}
	}
}

// exampleValues maps parameters to values that change the request to the
// daemon, or the answer. A key may begin with the id of an operation. If a
// parameter accepts only certain words, the tests send the second of these words
// instead. If a parameter is not in this map,
// they send "true".
var exampleValues = map[string]string{
	"update_time": "4000000000", "start_time": "2024-01-02", "end_time": "now", "usage_start": "1000", "usage_end": "2000", "time_start": "1000", "time_end": "2000", "submit_time": "1000",
	"state": "FAILED", "reason": "Priority", "step": "12", "job_id": "12", "qos": "fast", "default_qos": "fast",
	"id": "7", "association": "7", "reservation_id": "7", "rpc_version": "7", "cpus_min": "7", "cpus_max": "7", "nodes_min": "7", "nodes_max": "7",
	"get_jobs_priority partition": "long",
	"get_nodes state":             "DOWN", "get_jobs state": "RUNNING", "get_nodes node": "n9", "get_jobs node": "n9", "get_partitions node": "n9", "get_reservations node": "n9",
	"timelimit_min": "7", "timelimit_max": "7", "exit_code": "7", "node": "n[1-2]", "users": "alice", "groups": "alice",
	"report": "users", "start": "1699999200", "end": "1700006400", "by": "hour", "tres": "mem", "sizes": "2", "top": "7",
}

func exampleValue(e *api.Endpoint, name string) string {
	return cmp.Or(exampleValues[e.ID+" "+name], exampleValues[name])
}

// companions maps a parameter to the parameters that it requires. A key may begin
// with the id of an operation.
var companions = map[string]string{
	"SpecialExit":     "Hold=true&",
	"get_usage tres":  "start=1699999200&",
	"get_usage user":  "report=users&",
	"get_usage wckey": "report=wckeys&", "get_usage qos": "report=qos&", "get_usage account": "report=accounts&",
	"get_usage sizes": "report=job_sizes&start=1699999200&", "get_usage top": "report=top_users&",
}

// ineffective lists the parameters that change neither the requests to daemons
// nor the answer, each with the reason. The id of an operation stands for any
// of its parameters.
var ineffective = map[string]string{
	"format":           "every field is shown in any case",
	"with_coords":      "the coordinators are shown in any case",
	"WithCoordinators": "the same",
	"NoUsersAreCoords": "says nothing to a list of accounts",
	"UsersAreCoords":   "the same",
	"get_clusters":     "clusters have no date of their last change",
	"top":              "the demo has no usage of yesterday",
}

// TestParametersHaveEffect checks that every parameter changes the request to a
// daemon, or the answer. The exceptions are in ineffective.
func TestParametersHaveEffect(t *testing.T) {
	unused := map[string]bool{}
	plain := map[string]string{}
	get := func(path string) string {
		f := demo()
		w := serve(t, config(f), request(http.MethodGet, path, ""))
		if w.Code != http.StatusOK && w.Code != http.StatusNotFound && w.Code != http.StatusNotModified {
			t.Errorf("%s: status %d: %.300s", path, w.Code, w.Body)
		}
		answer, _, _ := strings.Cut(w.Body.String(), `"warnings"`)
		return fmt.Sprintf("%q %+v %+v %+v %+v %+v %s", f.calls, f.queries, f.partitionQueries, f.selected, f.shareQueries, f.recorded.filters, answer)
	}
	count := 0
	eachParameter(func(e *api.Endpoint, v schema.View, path string, p schema.Property) {
		count++
		values := []string{exampleValue(e, p.Name), "true"}
		if p.Shape.Enum != nil {
			values = p.Shape.Enum[1:2] // the first may be the default
			if e == api.GetPartitions.Endpoint {
				values = p.Shape.Enum // the others make no difference to the controller
			}
		}
		required := cmp.Or(companions[e.ID+" "+p.Name], companions[p.Name])
		if plain[path+required] == "" {
			plain[path+required] = get(strings.TrimSuffix(path+"?"+required, "?"))
		}
		values = slices.DeleteFunc(slices.Clone(values), func(s string) bool { return s == "" })
		got := get(path + "?" + required + url.Values{p.Name: values[:1]}.Encode())
		same := got == plain[path+required]
		// If a request for recorded jobs has a query, the gateway selects only
		// the jobs of this cluster. So the test compares two requests that both
		// have a query.
		if e == api.GetAccountingJobs.Endpoint {
			same = got == get(path+"?format=true")
		}
		if !same {
			return
		}
		for _, name := range []string{p.Name, e.ID} {
			if ineffective[name] != "" {
				unused[name] = true
				return
			}
		}
		t.Errorf("%s: %s makes no difference", path, p.Name)
	})
	if count < 400 {
		t.Errorf("only %d parameters", count)
	}
	for name, reason := range ineffective {
		if reason != "" && !unused[name] {
			t.Errorf("%s makes a difference", name)
		}
	}
}

// TestRepeatedParameters checks that sending a parameter several times has the
// same effect as sending all values in one parameter, separated by commas. If
// the parameter is not a list, the gateway must refuse the request.
func TestRepeatedParameters(t *testing.T) {
	get := func(path string, values ...string) (status int, queries, refused string) {
		f := demo()
		w := serve(t, config(f), request(http.MethodGet, path+"?"+strings.Join(values, "&"), ""))
		for _, e := range envelope(t, w.Body.Bytes()).Errors {
			refused += e.Source + ": " + e.Description
		}
		return w.Code, fmt.Sprintf("%+v %+v %+v %+v %+v", f.queries, f.partitionQueries, f.selected, f.shareQueries, f.recorded.filters), refused
	}
	lists := 0
	eachParameter(func(e *api.Endpoint, _ schema.View, path string, p schema.Property) {
		name, one, two := url.QueryEscape(p.Name)+"=", "7", "8"
		switch {
		case p.Shape.Enum != nil:
			one, two = p.Shape.Enum[0], p.Shape.Enum[1]
		case p.Name == "state" || p.Name == "reason" || p.Name == "qos" || p.Name == "default_qos" || p.Name == "id" || p.Name == "tres":
			one, two = exampleValue(e, p.Name), exampleValue(e, p.Name)
		}
		status, queries, _ := get(path, name+one+","+two)
		repeatedStatus, repeatedQueries, refused := get(path, name+one, name+two)
		if status != repeatedStatus || queries != repeatedQueries {
			t.Errorf("%s: %s with a comma: status %d, %s; twice: status %d, %s", path, p.Name, status, queries, repeatedStatus, repeatedQueries)
		}
		if repeatedStatus == http.StatusUnprocessableEntity && refused != rest.InQuery+p.Name+": "+p.Name+": set more than once" {
			t.Errorf("%s: %s twice: %s", path, p.Name, refused)
		} else if repeatedStatus == http.StatusOK {
			lists++
		}
	})
	if lists < 100 {
		t.Errorf("only %d parameters are lists", lists)
	}
}

// TestStrangeValues checks that the gateway either accepts a value of a
// parameter, or refuses it with an error that names the parameter.
func TestStrangeValues(t *testing.T) {
	strange := []string{
		"", "%20", ",", ",,", "a,,b", "0", "-1", "007", "4294967296", "99999999999999999999", "1.5", "1e9", "%2B", "+", "null", "true", "%00", "a%00b",
		"%C3%BC", "%FF%FE", "%0A", "a'b", "a%22b", "%5C", "%25", "%E2%80%AE", "[", "n[1-", "{}", "12_3", "12%2B1", "12_[1-3]", "12.batch", "now", "../..", strings.Repeat("x", 4000),
	}
	eachParameter(func(e *api.Endpoint, v schema.View, path string, p schema.Property) {
		if v.Version != api.V43 && (v.Version != api.V40 || e != api.GetAccountingJobs.Endpoint) {
			return // v0.0.43 is enough, except for job parameters that exist only in v0.0.40
		}
		for _, value := range strange {
			f := demo()
			w := serve(t, config(f), request(http.MethodGet, path+"?"+url.PathEscape(p.Name)+"="+value, ""))
			switch w.Code {
			case http.StatusOK, http.StatusNotFound, http.StatusNotModified:
			case http.StatusUnprocessableEntity:
				if errs := envelope(t, w.Body.Bytes()).Errors; len(errs) != 1 || errs[0].Source != rest.InQuery+p.Name || errs[0].Description == "" {
					t.Errorf("%s?%s=%s: %+v", path, p.Name, value, errs)
				}
			default:
				t.Errorf("%s?%s=%.40s: status %d: %.300s", path, p.Name, value, w.Code, w.Body)
			}
		}
	})
	long := "/slurmdb/v0.0.43/jobs?job_name=" + strings.Repeat("x", 100_000)
	if w := serve(t, config(demo()), request(http.MethodGet, long, "")); w.Code != http.StatusRequestURITooLong {
		t.Errorf("100 kB: status %d", w.Code)
	}
}
