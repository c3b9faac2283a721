package slurm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestDifferential sends the same GETs with the same tokens to both gateways, and
// compares every field of the answers. Both gateways use the same controller. The
// test sends every GET that both gateways serve. fieldTable lists the permitted
// differences. TestRoles does the same for users from whom PrivateData hides
// everything.
func TestDifferential(t *testing.T) {
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("the gateway of 22.05 serves v0.0.36 to v0.0.38, none of which is served here")
	}
	m.populate(t)
	m.reference(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	jobs["plain"] = m.submitPlain(t)
	excepted := readExceptions(t)
	seen := m.compareGETs(t, excepted, m.readers)
	m.checkSilent(t, excepted, seen)
	for _, e := range excepted {
		if listHas(e.releases, m.release) && !e.needed && e.kind != "moves" {
			t.Errorf("%s:%d: no longer needed with %s: %s of %s", fieldTable, e.line, m.release, e.field, e.path)
		}
	}
}

// readers returns the tokens with which TestDifferential sends a request, by the
// users' names. An administrator sees what is hidden. An ordinary user sends only
// the requests in the newest version, because all would take too long.
func (m *machine) readers(version, _ string) map[string]string {
	tokens := map[string]string{"slurm": m.admin}
	if version == m.newestVersion() {
		tokens["alice"] = m.token
	}
	return tokens
}

// newestVersion returns the newest version that slurmrestd serves.
func (m *machine) newestVersion() string {
	return map[string]string{"24.11": "v0.0.42", "26.05": "v0.0.45"}[m.release]
}

// compareGETs sends both gateways every GET that they both serve, without
// parameters and with each of its parameters, and compares every field of the
// answers. The function readers returns the tokens with which to send a request,
// by the users' names. compareGETs returns the compared fields of each endpoint.
func (m *machine) compareGETs(t *testing.T, excepted exceptions, readers func(version, request string) map[string]string) map[string]fields {
	t.Helper()
	reference, gateway := m.client(referenceSocket), m.client(gatewaySocket)
	referenceOps, gatewayOps := m.document(t, reference), m.document(t, gateway)

	seen, count, requests, endpoints := map[string]fields{}, 0, 0, map[string]bool{}
	unexpected := map[string]*unexplained{}
	for _, path := range slices.Sorted(maps.Keys(gatewayOps)) {
		operation, ok := referenceOps[path]
		version, bare := cutVersion(path)
		if !ok || version == "" {
			continue
		}
		endpoints[path] = true
		for _, request := range m.requests(t, path, bare, operation) {
			tokens := readers(version, request)
			if len(tokens) == 0 {
				continue
			}
			requests++
			if seen[bare] == nil {
				seen[bare] = fields{}
			}
			endpoint := bare
			if _, query, ok := strings.Cut(request, "?"); ok {
				endpoint += "?" + query
			}
			isUnexpected := func(d difference) bool { return !excepted.allowed(m.release, version, endpoint, d) }
			for user, token := range tokens {
				found, n := m.compareAnswers(t, seen[bare], reference, gateway, token, request)
				count += n
				found = filter(found, isUnexpected)
				for range 2 { // a difference that disappears was caused by the schedulers, which changed the cluster between the requests
					if len(found) == 0 {
						break
					}
					time.Sleep(time.Second)
					repeated, _ := m.compareAnswers(t, seen[bare], reference, gateway, token, request)
					found = filter(found, func(d difference) bool {
						return slices.ContainsFunc(repeated, func(e difference) bool { return d.field == e.field && d.kind == e.kind })
					})
				}
				for _, d := range found {
					key := bare + " " + d.field + " " + d.kind
					if unexpected[key] == nil {
						unexpected[key] = &unexplained{first: fmt.Sprintf("%s by %s: %v", request, user, d)}
					}
					unexpected[key].add(version)
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(unexpected)) {
		u := unexpected[key]
		t.Errorf("%s, %d times, %v, first %s", key, u.times, u.versions, u.first)
	}
	t.Logf("%d endpoints (versions counted), %d requests, %d fields compared", len(endpoints), requests, count)
	if len(endpoints) < 20 {
		t.Errorf("only %d endpoints are served by both", len(endpoints))
	}
	return seen
}

// submitPlain submits a job that has almost no fields, through the gateway.
// (Slurm's commands would set many fields by themselves.)
func (m *machine) submitPlain(t *testing.T) string {
	t.Helper()
	held := strings.Replace(submission("/dev/null"), `"name":"who"`, `"name":"plain","hold":true`, 1)
	a, err := sendRequest(m.client(gatewaySocket), "POST", "/slurm/v0.0.42/job/submit", held, "X-SLURM-USER-TOKEN: "+m.token)
	must(t, err)
	var s response
	if err := json.Unmarshal(a.body, &s); err != nil || a.status != http.StatusOK {
		t.Fatalf("status %d, %v: %.300s", a.status, err, a.body)
	}
	return s.JobID.String()
}

// filter returns the differences for which keep returns true.
func filter(list []difference, keep func(difference) bool) []difference {
	return slices.DeleteFunc(list, func(d difference) bool { return !keep(d) })
}

// unexplained is a difference for which no table has a row.
type unexplained struct {
	versions []string
	times    int
	first    string
}

func (u *unexplained) add(version string) {
	u.times++
	if !slices.Contains(u.versions, version) {
		u.versions = append(u.versions, version)
	}
}

// operation is the description of a GET in a gateway's OpenAPI document.
type operation struct {
	Parameters []struct {
		Name   string
		In     string
		Schema struct{ Enum []string }
	}
}

// document returns a gateway's GET operations by path.
func (m *machine) document(t *testing.T, c *http.Client) map[string]operation {
	t.Helper()
	a, err := sendRequest(c, "GET", "/openapi/v3", "", "X-SLURM-USER-TOKEN: "+m.token)
	must(t, err)
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(a.body, &document); err != nil || len(document.Paths) == 0 {
		t.Fatalf("status %d, %v: %.300s", a.status, err, a.body)
	}
	list := map[string]operation{}
	for path, methods := range document.Paths {
		if text, ok := methods["get"]; ok && !changingGET.MatchString(path) {
			var o operation
			must(t, json.Unmarshal(text, &o))
			list[strings.TrimSuffix(path, "/")] = o
		}
	}
	return list
}

// changingGET are the GETs that change something.
var changingGET = regexp.MustCompile(`/(reconfigure|requeue)/?$`)

var versioned = regexp.MustCompile(`^(/slurm(?:db)?)/(v0\.0\.\d+)(/.*)$`)

func cutVersion(path string) (version, bare string) {
	if s := versioned.FindStringSubmatch(path); s != nil {
		return s[2], s[1] + s[3]
	}
	return "", path
}

// pathNames returns the values to request for the parameter of each path that
// has one.
func (m *machine) pathNames() map[string][]string {
	ids := slices.Sorted(maps.Values(jobs))
	return map[string][]string{
		"/slurm/job/{job_id}":                   append(slices.Clone(ids), jobs["array"]+"_2", "999999"),
		"/slurmdb/job/{job_id}":                 append(slices.Clone(ids), "999999"),
		"/slurm/node/{node_name}":               {"node1", "n01", "n02", "c1", "n[03-04]", "unknown"},
		"/slurm/partition/{partition_name}":     {"debug", "fake", "hidden", "cloud", "unknown"},
		"/slurm/reservation/{reservation_name}": {"upgrade", "daily", "unknown"},
		"/slurmdb/account/{account_name}":       {"physics", "root", "unknown"},
		"/slurmdb/user/{name}":                  {"alice", "root", "unknown"},
		"/slurmdb/qos/{qos}":                    {"quick", "normal", "unknown"},
		"/slurmdb/cluster/{cluster_name}":       {"lab", "unknown"},
		"/slurmdb/wckey/{id}":                   {cmp.Or(m.wckey, "1"), "999999"},
		"/slurm/resources/{job_id}":             append(slices.Clone(ids), "999999"),
	}
}

// values are values of parameters, by name.
var values = map[string][]string{
	"update_time":         {"1000", "4000000000", "now-1day"},
	"users":               {"alice", "alice,bob"},
	"user":                {"alice"},
	"account":             {"physics", "physics,optics"},
	"job_name":            {"done"},
	"state":               {"COMPLETED", "failed,cancelled"},
	"start_time":          {"now-1hour", "1000", "today"},
	"end_time":            {"now+1day", "2038-01-02T10:00"},
	"usage_start":         {"now-1day"},
	"partition":           {"debug"},
	"qos":                 {"quick", "normal"},
	"cluster":             {"lab"},
	"name":                {"quick", "alice"},
	"node":                {"node1"},
	"description":         {"light"},
	"accounts":            {"physics"},
	"default_account":     {"optics"},
	"admin_level":         {"Administrator"},
	"with_deleted":        {"true"},
	"with_assocs":         {"true"},
	"with_coords":         {"1"},
	"WithAssociations":    {"true"},
	"WithCoordinators":    {"true"},
	"with_usage":          {"true"},
	"with_users":          {"true"},
	"skip_steps":          {"true"},
	"show_duplicates":     {"true"},
	"Include deleted QOS": {"true"},
	"Include usage":       {"true"},
	"default_qos":         {"normal"},
	"groups":              {"alice"},
	"organization":        {"science"},
	"parent_account":      {"physics"},
	"reason":              {"Dependency"},
	"reservation":         {"cores"},
	"wckey":               {"spectra"},
	"exit_code":           {"7"},
}

// requests returns the requests for a path: one for each value in pathNames,
// and one for each value of each query parameter.
func (m *machine) requests(t *testing.T, path, bare string, o operation) (list []string) {
	plain := []string{path}
	if before, after, ok := strings.Cut(path, "{"); ok {
		_, after, _ = strings.Cut(after, "}")
		names := m.pathNames()[bare]
		if names == nil {
			t.Errorf("there are no names to request from %s", path)
		}
		plain = nil
		for _, name := range names {
			plain = append(plain, before+url.PathEscape(name)+after)
		}
	}
	list = append(list, plain...)
	for _, p := range o.Parameters {
		if p.In != "query" {
			continue
		}
		values := values[p.Name]
		if len(p.Schema.Enum) > 0 {
			values = p.Schema.Enum
		}
		for _, value := range values {
			list = append(list, plain[0]+"?"+url.QueryEscape(p.Name)+"="+url.QueryEscape(value))
		}
		if p.Name == "Include usage" || p.Name == "with_usage" { // otherwise the usage is yesterday's
			list = append(list, plain[0]+"?"+url.QueryEscape(p.Name)+"=true&usage_start=now-2hours&usage_end=now%2B2hours")
		}
	}
	return slices.DeleteFunc(list, func(request string) bool { return m.release < "26.05" && fatal.MatchString(request) })
}

// fatal matches requests that crash slurmrestd 24.11.
var fatal = regexp.MustCompile(`/wckeys/?\?.*usage_|/jobs/?\?groups=`)

var nonJSONNumber = regexp.MustCompile(`: *(-?Infinity|NaN)\b`)

// compareAnswers sends a request with a token to reference, to gateway, and to
// reference again. It reports a difference in a field only if the gateway's answer
// differs from both answers of reference.
func (m *machine) compareAnswers(t *testing.T, seen fields, reference, gateway *http.Client, token, request string) ([]difference, int) {
	t.Helper()
	header := "X-SLURM-USER-TOKEN: " + token
	get := func(c *http.Client) (status any, body any) {
		a, err := sendRequest(c, "GET", request, "", header)
		must(t, err)
		// slurmrestd writes numbers that JSON does not permit.
		d := json.NewDecoder(bytes.NewReader(nonJSONNumber.ReplaceAll(a.body, []byte(`: "$1"`))))
		d.UseNumber() // so that 2.0 differs from 2
		if err := d.Decode(&body); err != nil && len(a.body) > 0 {
			t.Fatalf("status %d, %v: %.300s", a.status, err, a.body)
		}
		return json.Number(fmt.Sprint(a.status)), body
	}
	status, before := get(reference)
	gatewayStatus, body := get(gateway)
	_, after := get(reference)
	if status != gatewayStatus {
		if text := fmt.Sprint(before); gatewayStatus == json.Number("403") && (strings.Contains(text, "error_number:2002") || strings.Contains(text, "errors:[]")) {
			return []difference{{"status", "denied", status, gatewayStatus}}, 1
		}
		return []difference{{"status", "value", status, gatewayStatus}}, 1
	}
	if status != json.Number("200") {
		return nil, 1 // our error texts differ from Slurm's
	}
	found, n := seen.compare("", before, body)
	repeated, _ := seen.compare("", after, body)
	persistent := map[string]bool{}
	for _, d := range repeated {
		persistent[d.field+d.kind] = true
	}
	return slices.DeleteFunc(found, func(d difference) bool { return !persistent[d.field+d.kind] }), n
}
