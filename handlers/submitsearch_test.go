package handlers

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/keystate"
	"schedrestd/model"
)

// TestKeySearch checks that a gateway that does not know the outcome of an earlier request
// with the same key looks for its job, and submits one only if there is none.
func TestKeySearch(t *testing.T) {
	const other = `{"job": {"script": "y"}}`
	// The job that another gateway has submitted for the key k and keyedBody.
	first := demo()
	cfg := config(first)
	cfg.Worker, cfg.SearchKeys = &keyMemory{}, true
	if w := serve(t, cfg, keyed(keyedBody, "k")); w.Code != 200 || w.Header().Get(api.HeaderReplayed) != "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	desc := first.submitted[0]
	session, line := desc.AllocSID.Number, desc.SubmitLine.String()
	if session < firstMark || strings.Contains(line, "k ") || len(line) > 100 {
		t.Errorf("the mark of the job is %d, %q", session, line)
	}
	old := model.Job{StepID: model.StepID{JobID: 5}, AllocSID: session, SubmitLine: line}
	changed := func(change func(*model.Job)) model.Job {
		j := old
		change(&j)
		return j
	}
	mute := changed(func(j *model.Job) { j.SubmitLine = "" }) // as a controller before 25.11 shows it
	tests := []struct {
		name      string
		body      string
		jobs      []model.Job
		appears   []model.Job // … while this gateway submits its own
		recorded  string      // the line of job 5 in accounting
		listErr   error
		state     keystate.State // of the key in the gateway's own file
		status    int
		code      string
		job       string // in the answer
		submitted int
		cancelled []string
	}{
		{name: "none", body: keyedBody, status: 200, job: "17", submitted: 1},
		{name: "one", body: keyedBody, jobs: []model.Job{old}, status: 200, job: "5"},
		{name: "an array", body: keyedBody, jobs: []model.Job{changed(func(j *model.Job) { j.StepID.JobID, j.ArrayJobID = 9, 5 })}, status: 200, job: "5"},
		{name: "of another key", body: keyedBody, jobs: []model.Job{changed(func(j *model.Job) { j.AllocSID++ })}, status: 200, job: "17", submitted: 1},
		{name: "of another key with the same number", body: keyedBody, jobs: []model.Job{changed(func(j *model.Job) { j.SubmitLine = "Idempotency-Key 00" })}, status: 200, job: "17", submitted: 1},
		{name: "another request", body: other, jobs: []model.Job{old}, status: 422, code: "idempotency_key_reused"},
		{name: "known to accounting", body: keyedBody, jobs: []model.Job{mute}, recorded: line, status: 200, job: "5"},
		{name: "of another key, says accounting", body: keyedBody, jobs: []model.Job{mute}, recorded: "Idempotency-Key 00", status: 200, job: "17", submitted: 1},
		{name: "accounting does not know", body: keyedBody, jobs: []model.Job{mute}, status: 502, code: errs.OutcomeUnknown},
		{name: "no list", body: keyedBody, listErr: &errs.Error{Kind: errs.Unavailable, Message: "down"}, status: 503},
		{name: "an earlier one at the same time", body: keyedBody, appears: []model.Job{old}, status: 200, job: "5", submitted: 1, cancelled: []string{"17"}},
		{name: "a later one at the same time", body: keyedBody, appears: []model.Job{changed(func(j *model.Job) { j.StepID.JobID = 18 })}, status: 200, job: "17", submitted: 1, cancelled: []string{"18"}},
		{name: "unknown here, and there is one", body: keyedBody, state: keystate.Unknown, jobs: []model.Job{old}, status: 200, job: "5"},
		{name: "unknown here, and there is none", body: keyedBody, state: keystate.Unknown, status: 200, job: "17", submitted: 1},
		{name: "answered here", body: keyedBody, state: keystate.Answered, status: 200, job: "5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := demo()
				f.jobs, f.recorded.jobs = tt.jobs, nil
				if tt.recorded != "" {
					f.recorded.jobs = []model.AccountingJob{{JobID: 5, Cluster: "demo", SubmitLine: tt.recorded}}
				}
				f.callErrs = map[string]error{"jobs": tt.listErr}
				f.submitting = func() { f.jobs = append(f.jobs, tt.appears...) }
				m := &keyMemory{}
				cfg := config(f)
				cfg.Worker, cfg.SearchKeys = m, true
				if tt.state != keystate.None {
					claims := &keyMemory{err: &rest.KeyError{State: keystate.Full}}
					probe := config(demo())
					probe.Worker = claims
					serve(t, probe, keyed(keyedBody, "k"))
					k := claims.claims[0]
					m.states = map[[32]byte]*keyEntry{k.Key: {body: k.Body, state: tt.state, answer: []byte(`{"v":1,"job":5,"step":4294967291}`)}}
				}
				w := serve(t, cfg, keyed(tt.body, "k"))
				if w.Code != tt.status || tt.code != "" && envelope(t, w.Body.Bytes()).Errors[0].Code != tt.code || tt.job != "" && !strings.Contains(w.Body.String(), `"job_id":`+tt.job+`,`) {
					t.Errorf("%d %s", w.Code, w.Body)
				}
				if len(f.submitted) != tt.submitted || !slices.Equal(f.cancelled, tt.cancelled) {
					t.Errorf("%d jobs submitted, %v cancelled", len(f.submitted), f.cancelled)
				}
				if replayed := w.Header().Get(api.HeaderReplayed) == "true"; replayed != (tt.job == "5") {
					t.Errorf("replayed: %v", replayed)
				}
				if w.Code != http.StatusOK {
					return
				}
				f.callErrs, f.jobs = nil, nil
				if again := serve(t, cfg, keyed(tt.body, "k")); again.Code != 200 || again.Header().Get(api.HeaderReplayed) != "true" || len(f.submitted) != tt.submitted || !strings.Contains(again.Body.String(), `"job_id":`+tt.job+`,`) {
					t.Errorf("the next request: %d %s", again.Code, again.Body)
				}
			})
		})
	}
}
