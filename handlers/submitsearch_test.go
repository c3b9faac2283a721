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
	old := model.Job{StepID: model.StepID{JobID: 5}, UserID: 20001, UserName: "alice", AllocSID: session, SubmitLine: line}
	changed := func(change func(*model.Job)) model.Job {
		j := old
		change(&j)
		return j
	}
	task := changed(func(j *model.Job) { j.StepID, j.ArrayJobID = model.StepID{JobID: 5, SLUID: 77}, 5 })
	second := changed(func(j *model.Job) { j.StepID, j.ArrayJobID = model.StepID{JobID: 9, SLUID: 78}, 5 })
	ended := func(j model.Job) model.Job { j.State = model.JobCancelled; return j }
	numbered := func(id uint32) model.Job { return changed(func(j *model.Job) { j.StepID.JobID = id }) }
	foreign := changed(func(j *model.Job) { j.UserID, j.UserName = 66, "mallory" })
	mute := changed(func(j *model.Job) { j.SubmitLine = "" }) // as a controller before 25.11 shows it
	tests := []struct {
		name      string
		body      string
		jobs      []model.Job
		appears   []model.Job // … while this gateway submits its own
		recorded  string      // the line of job 5 in accounting
		listErr   error
		laterErr  error // of the lists after the submission
		killErr   error
		nobody    bool           // this machine does not know the user
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
		{name: "an array with a task that has a number of its own", body: keyedBody, appears: []model.Job{task, second}, status: 200, job: "5", submitted: 1, cancelled: []string{"17"}},
		{name: "the loser of an earlier race", body: keyedBody, jobs: []model.Job{ended(numbered(6)), old}, status: 200, job: "5"},
		{name: "two that both run", body: keyedBody, jobs: []model.Job{numbered(6), old}, status: 200, job: "5", cancelled: []string{"6"}},
		{name: "two that both run, and can't be cancelled", body: keyedBody, jobs: []model.Job{numbered(6), old}, killErr: &errs.Error{Kind: errs.Denied}, status: 502, code: errs.OutcomeUnknown, cancelled: []string{"6"}},
		{name: "two, and the other has just ended", body: keyedBody, jobs: []model.Job{numbered(6), old}, killErr: &errs.Error{Kind: errs.Invalid, Number: 2021}, status: 200, job: "5", cancelled: []string{"6"}},
		{name: "numbers that began again", body: keyedBody, appears: []model.Job{numbered(67_000_000)}, status: 200, job: "67000000", submitted: 1, cancelled: []string{"17"}},
		{name: "another user's", body: keyedBody, jobs: []model.Job{foreign}, status: 200, job: "17", submitted: 1},
		{name: "another user's, and the user is not known here", body: keyedBody, nobody: true, jobs: []model.Job{foreign}, status: 200, job: "17", submitted: 1},
		{name: "the user's, who is not known here", body: keyedBody, nobody: true, jobs: []model.Job{old}, status: 200, job: "5"},
		{name: "of a user without a name", body: keyedBody, nobody: true, jobs: []model.Job{changed(func(j *model.Job) { j.UserName = "" })}, status: 502, code: errs.OutcomeUnknown},
		{name: "another request at the same time, earlier", body: other, appears: []model.Job{old}, status: 422, code: "idempotency_key_reused", submitted: 1, cancelled: []string{"17"}},
		{name: "another request at the same time, later", body: other, appears: []model.Job{numbered(18)}, status: 200, job: "17", submitted: 1, cancelled: []string{"18"}},
		{name: "no list after the submission", body: keyedBody, laterErr: &errs.Error{Kind: errs.Unavailable, Message: "down"}, status: 502, code: errs.OutcomeUnknown, submitted: 1},
		{name: "accounting does not know a later one", body: keyedBody, appears: []model.Job{mute}, status: 502, code: errs.OutcomeUnknown, submitted: 1},
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
				f.submitting = func() {
					f.jobs = append(f.jobs, tt.appears...)
					f.callErrs = map[string]error{"jobs": tt.laterErr}
				}
				f.killErr = tt.killErr
				m := &keyMemory{}
				cfg := config(f)
				cfg.Worker, cfg.SearchKeys = m, true
				if tt.nobody {
					cfg.Resolver = nil
				}
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
				if tt.code == errs.OutcomeUnknown && strings.Contains(w.Body.String(), "nothing") {
					t.Errorf("this request may have submitted a job, too: %s", w.Body)
				}
				if len(f.submitted) != tt.submitted || !slices.Equal(f.cancelled, tt.cancelled) {
					t.Errorf("%d jobs submitted, %v cancelled", len(f.submitted), f.cancelled)
				}
				if replayed := w.Header().Get(api.HeaderReplayed) == "true"; replayed != (tt.job != "" && tt.job != "17") {
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
