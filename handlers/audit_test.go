package handlers

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// recorder is an audit log that keeps its lines for a test. It can also be made
// to fail.
type recorder struct {
	rest.NoWorker
	err     error
	changes []rest.Change
	results []rest.Result
}

func (r *recorder) Intend(_ context.Context, c rest.Change) (func(rest.Result), error) {
	if c.Request == "" {
		return nil, errors.New("a change of no request")
	}
	c.Request = ""
	r.changes = append(r.changes, c)
	return func(result rest.Result) { r.results = append(r.results, result) }, r.err
}

// changeBody is a request body that every endpoint with a body accepts.
const changeBody = `{"job": {"script": "#!/bin/sh\n", "current_working_directory": "/tmp", "environment": ["A=b"]}}`

// TestNoChangeWithoutRecord checks that no change reaches a daemon while the
// audit log can't be written. It tries every endpoint that changes something,
// in every version. It also fails if a new endpoint calls its daemon without
// using the function change.
func TestNoChangeWithoutRecord(t *testing.T) {
	s := New(config(demo()))
	tested := map[*api.Endpoint]bool{}
	for _, g := range allGoldens(t) {
		for _, v := range api.Versions {
			r := request(g.method, g.path(v), "")
			endpoint, _, _ := s.Find(r)
			if endpoint == nil || !endpoint.Changing() || g.name == "not-understood" || g.name == "delete-everything" || endpoint.InPath("job_id") && path.Base(r.URL.Path) == "allocate" {
				continue
			}
			tested[endpoint] = true
			f := demo()
			cfg := config(f)
			cfg.Worker = &recorder{err: errs.New(errs.Unavailable, "no room")}
			w := serve(t, cfg, request(g.method, g.path(v), g.body))
			calls := slices.DeleteFunc(f.calls, func(call string) bool {
				return slices.Contains([]string{"verify", "nodes", "reservations", "partitions"}, call)
			}) // these endpoints only read
			if endpoint == api.PostTRES.Endpoint && w.Code == http.StatusNotImplemented && len(calls) == 0 {
				continue // always refused
			}
			if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || len(calls) > 0 || len(f.submitted) > 0 {
				t.Errorf("%s %s: status %d, the daemon was asked %q: %s", g.method, g.path(v), w.Code, calls, w.Body)
			}
		}
	}
	for _, e := range api.Endpoints {
		if e.Changing() && !tested[e] {
			t.Errorf("%s %s was not tried", e.Method, e.Path)
		}
	}
}

// TestChanges checks the lines of the audit log for each change.
func TestChanges(t *testing.T) {
	full := &errs.Error{Kind: errs.Denied, Message: "no", Number: 2002}
	tests := []struct {
		name, method, path, body string
		make                     func(*fake)
		change                   rest.Change
		result                   rest.Result
	}{
		{name: "submit", method: "POST", path: "/job/submit", body: changeBody, change: rest.Change{User: "alice", Method: "POST", Route: "/job/submit", Fields: "job/script job/current_working_directory job/environment"},
			result: rest.Result{Status: 200, Code: "ok", Objects: "1"}},
		{name: "refused", method: "POST", path: "/job/submit", body: changeBody, make: func(f *fake) { f.submitErr = full },
			change: rest.Change{User: "alice", Method: "POST", Route: "/job/submit", Fields: "job/script job/current_working_directory job/environment"}, result: rest.Result{Status: 403, Code: "denied", Number: 2002}},
		{name: "update", method: "POST", path: "/job/12", body: `{"comment": "c"}`, change: rest.Change{User: "alice", Method: "POST", Route: "/job/{job_id}", Object: "12", Fields: "comment"},
			make: func(f *fake) { f.taskResults = []model.TaskResult{{Tasks: "12_[1-2]", Code: 2021}, {Tasks: "12_3"}} }, result: rest.Result{Status: 200, Code: "partial", Number: 2021, Objects: "12 12_[1-2]:2021"}},
		{name: "cancel", method: "DELETE", path: "/job/12_3", change: rest.Change{User: "alice", Method: "DELETE", Route: "/job/{job_id}", Object: "12_3"},
			make: func(f *fake) {
				f.killResults = []model.KillResult{{ID: model.SelectedStep{Step: model.StepID{JobID: 12}, ArrayTaskID: model.Some[uint32](3)}}, {Code: 2021, ID: model.SelectedStep{Step: model.StepID{JobID: 13}}}}
			}, result: rest.Result{Status: 200, Code: "partial", Number: 2021, Objects: "12_3 13:2021"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, log := demo(), new(recorder)
			if tt.make != nil {
				tt.make(f)
			}
			cfg := config(f)
			cfg.Worker = log
			serve(t, cfg, request(tt.method, "/sched/v0.0.43"+tt.path, tt.body))
			for i := range log.results {
				if log.results[i].Code == "ok" && tt.method == "POST" {
					log.results[i].Objects = tt.result.Objects // the fake's numbers are arbitrary
				}
			}
			for i := range log.changes {
				log.changes[i].Route = "/" + strings.Trim(log.changes[i].Route, "/")
			}
			if diff := cmp.Diff([]rest.Change{tt.change}, log.changes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]rest.Result{tt.result}, log.results); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
