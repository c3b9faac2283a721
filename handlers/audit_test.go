package handlers

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api/schema"
	"schedrestd/errs"
	"schedrestd/model"
)

// recorder is an audit log that a test reads, or that can't be written.
type recorder struct {
	refuses error
	changes []Change
	results []Result
}

func (r *recorder) Intend(_ context.Context, c Change) (func(Result), error) {
	if c.Request == "" {
		return nil, errors.New("a change of no request")
	}
	c.Request = ""
	r.changes = append(r.changes, c)
	return func(result Result) { r.results = append(r.results, result) }, r.refuses
}

// changeBody is a body that each endpoint with one takes.
const changeBody = `{"job": {"script": "#!/bin/sh\n", "current_working_directory": "/tmp", "environment": ["A=b"]}}`

// TestNoChangeWithoutRecord: of every endpoint that is no GET, in every version, the daemon hears nothing when the audit log has no
// line about it. An endpoint that is new and asks its daemon otherwise than by change fails here.
func TestNoChangeWithoutRecord(t *testing.T) {
	h := newHandler(config(demo()))
	tried := 0
	for _, p := range h.router.routes {
		if p.Method == http.MethodGet {
			continue
		}
		for _, served := range h.Parsers {
			if !p.In(schema.Version(served.Version)) {
				continue
			}
			path := "/sched/" + served.Name() + "/" + strings.Trim(strings.ReplaceAll(p.Path, "{job_id}", "12"), "/")
			if p.Accounting {
				path = strings.Replace(path, "/sched/", "/scheddb/", 1)
			}
			f, cfg, body := demo(), Config{}, ""
			cfg = config(f)
			cfg.Audit = &recorder{refuses: errs.New(errs.Unavailable, "no room")}
			if p.Method != http.MethodDelete {
				body = changeBody
			}
			w := serve(t, cfg, request(p.Method, path, body))
			asked := slices.DeleteFunc(f.calls, func(call string) bool { return call == "vouch" })
			if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || len(asked) > 0 || len(f.submitted) > 0 {
				t.Errorf("%s %s: status %d, the daemon was asked %q: %s", p.Method, path, w.Code, asked, w.Body)
			}
			tried++
		}
	}
	if tried < 4 {
		t.Errorf("%d endpoints change something", tried)
	}
}

// TestChanges: what the audit log is told of each change.
func TestChanges(t *testing.T) {
	full := &errs.Error{Kind: errs.Denied, Message: "no", Number: 2002}
	tests := []struct {
		name, method, path, body string
		make                     func(*fake)
		change                   Change
		result                   Result
	}{
		{name: "submit", method: "POST", path: "/job/submit", body: changeBody, change: Change{User: "alice", Method: "POST", Route: "/job/submit"},
			result: Result{Status: 200, Code: "ok", Objects: "1"}},
		{name: "refused", method: "POST", path: "/job/submit", body: changeBody, make: func(f *fake) { f.submitErr = full },
			change: Change{User: "alice", Method: "POST", Route: "/job/submit"}, result: Result{Status: 403, Code: "denied", Number: 2002}},
		{name: "cancel", method: "DELETE", path: "/job/12_3", change: Change{User: "alice", Method: "DELETE", Route: "/job/{job_id}", Object: "12_3"},
			make: func(f *fake) {
				f.killResults = []model.KillResult{{ID: model.SelectedStep{Step: model.StepID{JobID: 12}, ArrayTaskID: model.Some[uint32](3)}}, {Code: 2021, ID: model.SelectedStep{Step: model.StepID{JobID: 13}}}}
			}, result: Result{Status: 200, Code: "partial", Number: 2021, Objects: "12_3 13:2021"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, log := demo(), new(recorder)
			if tt.make != nil {
				tt.make(f)
			}
			cfg := config(f)
			cfg.Audit = log
			serve(t, cfg, request(tt.method, "/sched/v0.0.43"+tt.path, tt.body))
			for i := range log.results {
				if log.results[i].Code == "ok" && tt.method == "POST" {
					log.results[i].Objects = tt.result.Objects // whatever number the fake gives
				}
			}
			for i := range log.changes {
				log.changes[i].Route = "/" + strings.Trim(log.changes[i].Route, "/")
			}
			if diff := cmp.Diff([]Change{tt.change}, log.changes); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]Result{tt.result}, log.results); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
