package handlers

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/feature"
	"schedrestd/model"
)

const misspelt = `{"job": {"script": "x", "time_limt": 5, "rlimits": {"nofiles": 7}}}`

// TestMisspeltField checks that a misspelt field in a submission is ignored,
// and that a warning suggests the correct name.
func TestMisspeltField(t *testing.T) {
	f := demo()
	w := serve(t, config(f), request(http.MethodPost, "/sched/v0.0.43/job/submit", misspelt))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	want := map[string]string{
		"#/job/time_limt":       "unknown field, ignored; did you mean time_limit?",
		"#/job/rlimits/nofiles": "unknown field, ignored; did you mean nofile?",
	}
	got := map[string]string{}
	for _, n := range envelope(t, w.Body.Bytes()).Warnings {
		got[n.Source] = n.Description
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestStrictBodies checks that the setting strict_bodies makes the gateway
// refuse a body with an unknown field, even with +fast. Nothing may be
// submitted.
func TestStrictBodies(t *testing.T) {
	for _, flags := range []feature.Flags{0, feature.Fast} {
		f := demo()
		cfg := config(f)
		cfg.Strict = true
		cfg.Parsers = []feature.Parser{{Version: 43, Flags: flags}}
		w := serve(t, cfg, request(http.MethodPost, "/sched/v0.0.43/job/submit", misspelt))
		body := envelope(t, w.Body.Bytes())
		if w.Code != http.StatusUnprocessableEntity || len(f.submitted) != 0 || len(body.Errors) != 2 {
			t.Fatalf("flags %v: status %d, %d submitted: %s", flags, w.Code, len(f.submitted), w.Body)
		}
		if d := cmp.Diff("job/time_limt: unknown field; did you mean time_limit? (line 1, column 38)", body.Errors[0].Description); d != "" {
			t.Error(d)
		}
		w = serve(t, cfg, request(http.MethodPost, "/sched/v0.0.43/job/submit", `{"job": {"script": "x"}}`))
		if w.Code != http.StatusOK || cmp.Diff([]*model.JobDesc{{Script: "x"}}, f.submitted) != "" {
			t.Errorf("flags %v: without it: status %d: %s", flags, w.Code, w.Body)
		}
	}
}
