package handlers

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

func TestQuery(t *testing.T) {
	all := model.ShowAll | model.ShowDetail
	tests := []struct {
		name, path string
		want       model.Query
		warnings   []string
	}{
		{"nothing said", "nodes", model.Query{Flags: all}, nil},
		{"flags", "nodes?flags=DETAIL,mixed", model.Query{Flags: model.ShowDetail}, nil},
		{"flags, repeated", "nodes?flags=DETAIL&flags=mixed", model.Query{Flags: model.ShowDetail}, nil},
		{"flags, nothing in them", "jobs?flags=", model.Query{Flags: all, Without: model.JobNodeIndexes}, nil},
		{"flags, escaped", "node/n1?flags=ALL%2CFUTURE", model.Query{Flags: model.ShowAll | model.ShowFuture}, nil},
		{"since", "jobs?update_time=1795000000", model.Query{Since: 1_795_000_000, Flags: all, Without: model.JobNodeIndexes}, nil},
		{"both", "job/12?update_time=7&flags=ALL", model.Query{Since: 7, Flags: model.ShowAll, Without: model.JobNodeIndexes}, nil},
		{"flags, of a federation", "jobs?flags=SIBLING,FEDERATION", model.Query{Flags: model.ShowSibling | model.ShowFederation, Without: model.JobNodeIndexes}, []string{"query/flags"}},
		{"unknown", "nodes?color=red&flags=ALL", model.Query{Flags: model.ShowAll}, []string{"query/color"}},
		{"a part of the path", "node/n1?node_name=n2", model.Query{Flags: all}, []string{"query/node_name"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			w := serve(t, config(f), request(http.MethodGet, "/sched/v0.0.42/"+tt.path, ""))
			if w.Code != http.StatusOK {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if d := cmp.Diff([]model.Query{tt.want}, f.queries); d != "" {
				t.Error(d)
			}
			var warnings []string
			for _, w := range envelope(t, w.Body.Bytes()).Warnings {
				warnings = append(warnings, w.Source)
			}
			if d := cmp.Diff(tt.warnings, warnings); d != "" {
				t.Errorf("warnings: %s", d)
			}
		})
	}
}

// TestParametersRefused tests requests with invalid parameters. The handlers
// may send a daemon only the request that verifies the credential. Only an
// authenticated client may get the name of the parameter.
func TestParametersRefused(t *testing.T) {
	tests := []struct {
		name, method, path string
		status             int
		source             string
	}{
		{"not a word", "GET", "nodes?flags=NOPE", 422, "query/flags"},
		{"given twice", "GET", "nodes?update_time=1&update_time=2", 422, "query/update_time"},
		{"one of two is not a word", "GET", "nodes?flags=ALL&flags=NOPE", 422, "query/flags"},
		{"a filter of the accounting daemon's jobs", "GET", "jobs?cluster=x", 422, "query/cluster"},
		{"a filter of another operation", "GET", "nodes?account=lab", 422, "query/account"},
		{"a filter where there are no parameters", "GET", "licenses?cluster=x", 422, "query/cluster"},
		{"a filter of one operation's name for another", "POST", "job/submit?partition=long", 422, "query/partition"},
		{"not a time", "GET", "jobs?update_time=yesterday", 422, "query/update_time"},
		{"a negative time", "GET", "jobs?update_time=-1", 422, "query/update_time"},
		{"not a signal", "DELETE", "job/12?signal=BANG", 422, "query/signal"},
		{"a signal after the last", "DELETE", "job/12?signal=65", 422, "query/signal"},
		{"a flag of another version", "DELETE", "job/12?flags=NO_CRON_JOBS", 422, "query/flags"},
		{"not a job", "GET", "job/twelve", 404, "path/job_id"},
		{"not a job to end", "DELETE", "job/all", 404, "path/job_id"},
		{"not a query", "GET", "nodes?flags=%zz", 400, "query"},
		{"two kinds of separators", "GET", "nodes?flags=ALL;update_time=1", 400, "query"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			w := serve(t, config(f), request(tt.method, "/sched/v0.0.42/"+tt.path, ""))
			body := envelope(t, w.Body.Bytes())
			if w.Code != tt.status || len(body.Errors) != 1 || body.Errors[0].Source != tt.source {
				t.Errorf("status %d, errors %+v", w.Code, body.Errors)
			}
			if got := strings.Join(f.calls, " "); got != "verify" {
				t.Errorf("calls: %s", got)
			}
			f.callErr = errs.New(errs.Unauthenticated, "forged")
			if w := serve(t, config(f), request(tt.method, "/sched/v0.0.42/"+tt.path, "")); w.Code != http.StatusUnauthorized {
				t.Errorf("to an unknown client: status %d", w.Code)
			}
		})
	}
}

// TestFilterRefused checks that an unknown parameter is refused if its name is
// that of a filter, such as "user". The answer must list the operation's
// parameters. Other unknown parameters must cause a warning, and so must
// unknown filters of a GET in Slurm's spelling. But without the filter a DELETE
// could concern more records.
func TestFilterRefused(t *testing.T) {
	w := serve(t, config(demo()), request(http.MethodGet, "/sched/v0.0.43/jobs?cluster=x", ""))
	body := envelope(t, w.Body.Bytes())
	if want := "cluster: unknown parameter; this operation takes update_time, flags, explain, job_id, users, account, partition, state, job_name, qos, node, reservation, wckey, fields, limit, continue, wait"; len(body.Errors) != 1 || body.Errors[0].Description != want {
		t.Errorf("errors %+v, want %q", body.Errors, want)
	}
	w = serve(t, config(demo()), request(http.MethodGet, "/scheddb/v0.0.43/jobs?user=me", ""))
	body = envelope(t, w.Body.Bytes())
	if want := "user: unknown parameter; did you mean users?; this operation takes account, "; len(body.Errors) != 1 || !strings.HasPrefix(body.Errors[0].Description, want) {
		t.Errorf("errors %+v, want %q", body.Errors, want)
	}
	f := demo()
	w = serve(t, config(f), request(http.MethodDelete, "/slurmdb/v0.0.43/associations?account=lab&users=me", ""))
	if body = envelope(t, w.Body.Bytes()); w.Code != http.StatusUnprocessableEntity || body.Errors[0].Source != "query/users" || changeCalls(f) != nil {
		t.Errorf("DELETE: status %d: %s", w.Code, w.Body)
	}
	for _, path := range []string{"/sched/v0.0.43/job/12?signl=USR1", "/slurm/v0.0.43/job/12?Signal=USR1", "/slurm/v0.0.45/node/n1?force=true"} {
		f := demo()
		w := serve(t, config(f), request(http.MethodDelete, path, ""))
		if body := envelope(t, w.Body.Bytes()); w.Code != http.StatusUnprocessableEntity || !strings.HasPrefix(body.Errors[0].Source, "query/") || changeCalls(f) != nil {
			t.Errorf("DELETE %s: status %d: %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/sched/v0.0.43/jobs?states=RUNNING", "/slurm/v0.0.43/jobs?states=RUNNING"} {
		r := request(http.MethodGet, path, "")
		r.Header.Set("Accept", rest.MediaEvents)
		if w := serve(t, config(demo()), r); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "did you mean state?") {
			t.Errorf("a stream of %s: status %d: %s", path, w.Code, w.Body)
		}
	}
	if w := serve(t, config(demo()), request(http.MethodGet, "/sched/v0.0.43/jobs?wait=1s&until=ended", "")); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("until of a list: status %d: %s", w.Code, w.Body)
	}
	for path, want := range map[string]string{
		"/slurm/v0.0.43/jobs?cluster=x":              "unknown parameter, ignored",
		"/slurmdb/v0.0.43/jobs?user=me":              "unknown parameter, ignored; did you mean users?",
		"/sched/v0.0.43/jobs?color=red":              "unknown parameter, ignored",
		"/slurm/v0.0.43/jobs?flag=ALL":               "unknown parameter, ignored; did you mean flags?",
		"/slurm/v0.0.43/reservations?flags=ALL":      "unknown parameter, ignored",
		"/slurmdb/v0.0.43/qos?update_time=1":         "unknown parameter, ignored",
		"/slurm/v0.0.43/jobs?format=name":            "unknown parameter, ignored",
		"/slurm/v0.0.43/node/n1?flags=ALL&colour=ye": "unknown parameter, ignored",
	} {
		w := serve(t, config(demo()), request(http.MethodGet, path, ""))
		if body := envelope(t, w.Body.Bytes()); w.Code != http.StatusOK || len(body.Warnings) != 1 || body.Warnings[0].Description != want {
			t.Errorf("%s: status %d, warnings %+v, want %q", path, w.Code, body.Warnings, want)
		}
	}
}

// TestOpenRanges checks that every version supports a range with only a minimum
// or only a maximum. slurmdbd itself would treat a lone minimum as the exact
// value, and ignore a lone maximum.
func TestOpenRanges(t *testing.T) {
	const most = 1<<32 - 1
	for query, want := range map[string]model.AccountingJobFilter{
		"cpus_min=4":                      {CPUsMin: 4, CPUsMax: most},
		"cpus_max=4":                      {CPUsMin: 1, CPUsMax: 4},
		"cpus_min=2&cpus_max=4":           {CPUsMin: 2, CPUsMax: 4},
		"nodes_min=4":                     {NodesMin: 4, NodesMax: most},
		"nodes_max=4":                     {NodesMin: 1, NodesMax: 4},
		"timelimit_min=60":                {TimeLimitMin: 60, TimeLimitMax: most},
		"timelimit_max=60":                {TimeLimitMin: 1, TimeLimitMax: 60},
		"timelimit_min=0&timelimit_max=0": {},
	} {
		want.Flags, want.Clusters = defaultJobFlags, []string{"demo"}
		for _, v := range api.Versions {
			f := demo()
			w := serve(t, config(f), request(http.MethodGet, "/slurmdb/"+v.String()+"/jobs?"+query, ""))
			if d := cmp.Diff(want, f.recorded.filters[len(f.recorded.filters)-1]); w.Code != http.StatusOK || d != "" {
				t.Errorf("%s %s: status %d, %s", v, query, w.Code, d)
			}
		}
	}
}

func TestSignal(t *testing.T) {
	tests := []struct {
		path string
		want [2]uint16
	}{
		{"job/12", [2]uint16{9, 8}},
		{"job/12?signal=SIGUSR1", [2]uint16{10, 8}},
		{"job/12?signal=15&flags=BATCH_JOB,FULL_JOB", [2]uint16{15, 9}},
		{"job/12?signal=0", [2]uint16{0, 8}},
		{"job/12?signal=64", [2]uint16{64, 8}},
	}
	for _, tt := range tests {
		f := demo()
		for _, version := range []string{"v0.0.41", "v0.0.42"} {
			if w := serve(t, config(f), request(http.MethodDelete, "/sched/"+version+"/"+tt.path, "")); w.Code != http.StatusOK {
				t.Fatalf("%s: status %d: %s", tt.path, w.Code, w.Body)
			}
		}
		if d := cmp.Diff([][2]uint16{tt.want, tt.want}, f.killArgs); d != "" {
			t.Errorf("%s: %s", tt.path, d)
		}
	}
}
