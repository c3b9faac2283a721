package handlers

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/feature"
	"schedrestd/model"
)

// TestFastSignal checks that with +fast an invalid signal or flag of a
// cancellation is still an error. Without it, the whole job would be killed.
func TestFastSignal(t *testing.T) {
	for _, query := range []string{"signal=USR9", "signal=", "signal=USR1&signal=USR2", "flags=BATCHJOB_ONLY"} {
		f := demo()
		cfg := config(f)
		cfg.Parsers = []feature.Parser{{Version: 42, Flags: feature.Fast}}
		w := serve(t, cfg, request(http.MethodDelete, "/slurm/v0.0.42/job/12?"+query, ""))
		if w.Code != http.StatusUnprocessableEntity || len(f.cancelled) != 0 {
			t.Errorf("%s: status %d, cancelled %v: %s", query, w.Code, f.cancelled, w.Body)
		}
	}
}

// TestFastDryRun checks that with +fast an invalid dry_run is still an error. Without
// it, the job would be submitted.
func TestFastDryRun(t *testing.T) {
	for _, query := range []string{"dry_run=perhaps", "dry_run=true&dry_run=true", "dryrun=true"} {
		f := demo()
		cfg := config(f)
		cfg.Parsers = []feature.Parser{{Version: 42, Flags: feature.Fast}}
		w := serve(t, cfg, request(http.MethodPost, "/slurm/v0.0.42/job/submit?"+query, `{"job": {"script": "x"}}`))
		if w.Code != http.StatusUnprocessableEntity || len(f.submitted) != 0 {
			t.Errorf("%s: status %d, %d submitted: %s", query, w.Code, len(f.submitted), w.Body)
		}
	}
	f := demo()
	cfg := config(f)
	cfg.Parsers = []feature.Parser{{Version: 42, Flags: feature.Fast}}
	w := serve(t, cfg, request(http.MethodPost, "/slurm/v0.0.42/job/submit?colour=red", `{"job": {"script": "x", "colour": "red"}}`))
	if body := envelope(t, w.Body.Bytes()); w.Code != http.StatusOK || len(f.submitted) != 1 || len(body.Warnings) != 0 {
		t.Errorf("another parameter: status %d, %d submitted: %s", w.Code, len(f.submitted), w.Body)
	}
	w = serve(t, cfg, request(http.MethodPost, "/slurm/v0.0.42/job/submit", `{"job": {"script": "x", "dry_run": true}}`))
	if w.Code != http.StatusUnprocessableEntity || len(f.submitted) != 1 {
		t.Errorf("in the body: status %d, %d submitted: %s", w.Code, len(f.submitted), w.Body)
	}
}

// TestFast checks that the parser flag +fast makes the gateway silently ignore
// values that it can't understand. Without the flag, the same request must
// cause an error or a warning.
func TestFast(t *testing.T) {
	tests := []struct {
		name, body string
		want       model.JobDesc
	}{
		{"unknown fields", `{"job": {"script": "x", "colour": "red"}, "weather": null}`, model.JobDesc{Script: "x"}},
		{"a word for a number", `{"job": {"script": "x", "tasks": "many", "name": "n", "nice": {}}}`, model.JobDesc{Script: "x", Name: "n"}},
		{"out of range", `{"job": {"script": "x", "cpus_per_task": 70000, "time_limit": {"set": true, "number": -4}}}`, model.JobDesc{Script: "x"}},
		{"one of a list", `{"job": {"script": "x", "argv": ["a", {}, "b\u0000", "c"]}}`, model.JobDesc{Script: "x", Argv: []string{"a", "c"}}},
		{"given twice", `{"job": {"script": "x", "name": "a", "name": "b"}}`, model.JobDesc{Script: "x", Name: "a"}},
		{"another kind", `{"job": {"script": "x", "prefer": {}, "rlimits": [], "crontab": "* * * * *"}}`, model.JobDesc{Script: "x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			cfg := config(f)
			cfg.Parsers = []feature.Parser{{Version: 42, Flags: feature.Fast}, {Version: 43}}
			w := serve(t, cfg, request(http.MethodPost, "/sched/v0.0.42/job/submit", tt.body))
			if w.Code != http.StatusOK || len(f.submitted) != 1 {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if d := cmp.Diff(&tt.want, f.submitted[0]); d != "" {
				t.Error(d)
			}
			if body := envelope(t, w.Body.Bytes()); len(body.Warnings) > 0 || len(body.Errors) > 0 {
				t.Errorf("warnings %+v, errors %+v", body.Warnings, body.Errors)
			}
			w = serve(t, cfg, request(http.MethodPost, "/sched/v0.0.43/job/submit", tt.body))
			if body := envelope(t, w.Body.Bytes()); len(body.Warnings)+len(body.Errors) == 0 {
				t.Errorf("without +fast: status %d and not a word", w.Code)
			}
		})
	}
}

// TestFastHasItsEnd checks which requests are refused even with +fast. These
// are requests whose body is not JSON, submissions without a script, and
// requests whose path names no job.
func TestFastHasItsEnd(t *testing.T) {
	for _, tt := range []struct {
		method, path, body string
		status             int
	}{
		{"POST", "job/submit", "{", 400}, {"POST", "job/submit", "[]", 422}, {"POST", "job/submit", `{"job": {"script": 5.5}}`, 200},
		{"GET", "job/twelve", "", 404}, {"GET", "nodes?flags=NOPE&update_time=yesterday&colour=red", "", 200},
	} {
		cfg := config(demo())
		cfg.Parsers = []feature.Parser{{Version: 42, Flags: feature.Fast}}
		if w := serve(t, cfg, request(tt.method, "/sched/v0.0.42/"+tt.path, tt.body)); w.Code != tt.status {
			t.Errorf("%s %s: status %d: %s", tt.path, tt.body, w.Code, w.Body)
		}
	}
}

func TestContent(t *testing.T) {
	for _, tt := range []struct {
		content                feature.Content
		controller, accounting int
		util                   int
	}{{0, 200, 200, 200}, {feature.Controller, 200, 404, 404}, {feature.Accounting, 404, 200, 404}, {feature.Util, 404, 404, 200},
		{feature.Controller | feature.Accounting, 200, 200, 404}, {feature.AllContent, 200, 200, 200}} {
		cfg := config(demo())
		cfg.Content = tt.content
		if w := serve(t, cfg, request("GET", "/sched/v0.0.42/ping", "")); w.Code != tt.controller {
			t.Errorf("content %d, controller: status %d", tt.content, w.Code)
		}
		if w := serve(t, cfg, request("GET", "/scheddb/v0.0.42/ping", "")); w.Code != tt.accounting {
			t.Errorf("content %d, accounting: status %d", tt.content, w.Code)
		}
		if w := serve(t, cfg, request("POST", "/util/v0.0.45/hostnames", `{"hostlist": "n[1-2]"}`)); w.Code != tt.util {
			t.Errorf("content %d, util: status %d", tt.content, w.Code)
		}
	}
}
