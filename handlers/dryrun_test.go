package handlers

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"schedrestd/internal/errs"
)

// TestDryRun checks that a dry run makes the checks of a submission, submits
// nothing, and answers with the controller's estimate.
func TestDryRun(t *testing.T) {
	const job = `{"job": {"script": "#!/bin/sh\n"}}`
	tests := []struct {
		name, target, body string
		header             string
		refusal            error // of the controller
		status             int
		calls              string // to the controller
		source             string // of the first error
	}{
		{name: "estimated", target: "?dry_run=true", body: job, status: 200, calls: "estimate"},
		{name: "several components", target: "?dry_run=true", body: `{"jobs": [{"script": "x"}, {"tasks": 1}]}`, status: 200, calls: "estimate"},
		{name: "not wanted", target: "?dry_run=false", body: job, status: 200, calls: "submit"},
		{name: "would be refused", target: "?dry_run=true", body: job, refusal: errs.New(errs.Invalid, "there are not so many nodes"), status: 422, calls: "estimate"},
		{name: "an invalid body", target: "?dry_run=true", body: `{"job": {"script": "x", "tasks": -1}}`, status: 422, source: "#/job/tasks"},
		{name: "no script", target: "?dry_run=true", body: `{"job": {}}`, status: 422, source: "#/job/script"},
		{name: "a wrong value", target: "?dry_run=perhaps", body: job, status: 422, source: "query/dry_run"},
		{name: "misspelt", target: "?dryrun=true", body: job, status: 422, source: "query/dryrun"},
		{name: "as the option of sbatch", target: "?test-only=1", body: job, status: 422, source: "query/test-only"},
		{name: "an empty value", target: "?dry_run=", body: job, status: 422, source: "query/dry_run"},
		{name: "no value", target: "?dry_run", body: job, status: 422, source: "query/dry_run"},
		{name: "in capitals", target: "?DRY_RUN=true", body: job, status: 422, source: "query/DRY_RUN"},
		{name: "with more words", target: "?job-dry-run=true", body: job, status: 422, source: "query/job-dry-run"},
		{name: "in the body", body: `{"dry_run": true, "job": {"script": "x"}}`, status: 422, source: "#/dry_run"},
		{name: "in the job", body: `{"job": {"script": "x", "test_only": true}}`, status: 422, source: "#/job/test_only"},
		{name: "in a component", body: `{"jobs": [{"script": "x"}, {"dryRun": true}]}`, status: 422, source: "#/jobs/1/dryRun"},
		{name: "with a wait", target: "?dry_run=true&wait=3", body: job, status: 422, source: "query/wait"},
		{name: "with a preference", target: "?dry_run=true", body: job, status: 200, calls: "estimate"},
		{name: "with a key", target: "?dry_run=true", body: job, header: "k", status: 422, source: "Idempotency-Key"},
		{name: "with a number", target: "?dry_run=true", body: `{"job": {"script": "x", "job_id": 7}}`, status: 422, source: "#/job/job_id"},
	}
	for _, tt := range tests {
		for _, segment := range []string{"sched", "slurm"} {
			t.Run(tt.name+"/"+segment, func(t *testing.T) {
				f := demo()
				f.submitErr = tt.refusal
				r := request(http.MethodPost, "/"+segment+"/v0.0.42/job/submit"+tt.target, tt.body)
				cfg := config(f)
				if tt.name == "with a preference" {
					r.Header.Set("Prefer", "wait=3")
				}
				if tt.header != "" {
					r.Header.Set("Idempotency-Key", tt.header)
					cfg.Worker = &keyMemory{}
				}
				w := serve(t, cfg, r)
				if calls := strings.TrimPrefix(strings.TrimPrefix(strings.Join(f.calls, " "), "verify"), " "); w.Code != tt.status || calls != tt.calls {
					t.Fatalf("status %d, calls %q: %s", w.Code, calls, w.Body)
				}
				if applied := w.Header().Get("Preference-Applied"); applied != "" {
					t.Errorf("Preference-Applied: %s", applied)
				}
				if submitted := tt.calls == "submit"; submitted != (len(f.submitted) == 1) {
					t.Errorf("%d jobs submitted", len(f.submitted))
				}
				var body struct {
					JobID    int    `json:"job_id"`
					Message  string `json:"job_submit_user_msg"`
					Estimate *struct {
						Start struct {
							Set    bool
							Number int
						} `json:"start_time"`
						Nodes, Partition string
						CPUs             int
						Preempted        []int `json:"preempted_jobs"`
					}
					Errors []struct{ Source string }
				}
				if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
					t.Fatal(err)
				}
				switch e := body.Estimate; {
				case tt.status != 200:
					if len(body.Errors) == 0 || tt.source != "" && body.Errors[0].Source != tt.source {
						t.Errorf("errors %+v", body.Errors)
					}
				case tt.calls == "submit":
					if e != nil || body.JobID != 17 {
						t.Errorf("answer %s", w.Body)
					}
				case e == nil || !e.Start.Set || e.Start.Number != 1_700_000_000 || e.Nodes != "node1" || e.Partition != "debug" || e.CPUs == 0 || !slices.Equal(e.Preempted, []int{5}) || body.JobID != 0 || body.Message != "welcome":
					t.Errorf("answer %s", w.Body)
				}
			})
		}
	}
}

// TestUnknownParameterOfSubmission checks that in this project's spelling a submission
// with an unknown parameter is refused: the parameter may be meant to be a dry run.
func TestUnknownParameterOfSubmission(t *testing.T) {
	for segment, status := range map[string]int{"sched": http.StatusUnprocessableEntity, "slurm": http.StatusOK} {
		f := demo()
		w := serve(t, config(f), request(http.MethodPost, "/"+segment+"/v0.0.42/job/submit?validate=true", `{"job": {"script": "x"}}`))
		if w.Code != status || (len(f.submitted) == 1) != (status == http.StatusOK) {
			t.Errorf("%s: status %d, %d submitted: %s", segment, w.Code, len(f.submitted), w.Body)
		}
	}
}
