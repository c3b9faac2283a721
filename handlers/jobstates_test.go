package handlers

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/model"
)

func statesOf(t *testing.T, f *fake, query string) (states map[string][]string) {
	t.Helper()
	w := serve(t, config(f), request(http.MethodGet, "/sched/v0.0.43/jobs/state"+query, ""))
	if w.Code != http.StatusOK {
		t.Fatalf("%s: status %d: %s", query, w.Code, w.Body)
	}
	var body struct {
		Jobs []struct {
			ID    string `json:"job_id"`
			State []string
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	states = map[string][]string{}
	for _, j := range body.Jobs {
		states[j.ID] = j.State
	}
	return states
}

// TestJobSelection checks that the gateway requests the states of the jobs that
// the client selects. If the client sends a text that can't be a job's id, the
// gateway must not call the controller.
func TestJobSelection(t *testing.T) {
	f := demo()
	statesOf(t, f, "?job_id=12,20_3,30%2B1,40_*")
	want := [][]model.JobSelection{{
		{JobID: 12}, {JobID: 20, ArrayTaskID: model.Some[uint32](3)}, {JobID: 30, HetOffset: model.Some[uint32](1)}, {JobID: 40},
	}}
	if d := cmp.Diff(want, f.selected); d != "" {
		t.Error(d)
	}
	for _, wrong := range []string{"x", "0", "-1", "12_", "12_x", "12%2B", "12%2B*", "12_3%2B1", "4294967296", "12.0", "12_[1-3]", "12,,13"} {
		f := demo()
		if w := serve(t, config(f), request(http.MethodGet, "/sched/v0.0.43/jobs/state?job_id="+wrong, "")); w.Code != http.StatusUnprocessableEntity || f.selected != nil {
			t.Errorf("%s: status %d, asked for %v", wrong, w.Code, f.selected)
		}
	}
}

// TestStatesFromJobs checks that the gateway extracts the states from the jobs
// if the controller does not support the request for states.
func TestStatesFromJobs(t *testing.T) {
	f := demo()
	f.states = nil
	f.jobs = []model.Job{
		{StepID: model.StepID{JobID: 12}, State: model.JobFailed},
		{StepID: model.StepID{JobID: 20}, ArrayJobID: 20, ArrayTasks: "0x82"},
		{StepID: model.StepID{JobID: 21}, ArrayJobID: 20, ArrayTaskID: model.Some[uint32](3), State: model.JobRunning},
		{StepID: model.StepID{JobID: 30}, HetJobID: 30, State: model.JobRunning},
		{StepID: model.StepID{JobID: 31}, HetJobID: 30, HetJobOffset: 1, State: model.JobRunning},
	}
	running, pending := []string{"RUNNING"}, []string{"PENDING"}
	for query, want := range map[string]map[string][]string{
		"":                    {"12": {"FAILED"}, "20_1": pending, "20_7": pending, "20_3": running, "30+0": running, "30+1": running},
		"?job_id=12":          {"12": {"FAILED"}},
		"?job_id=20":          {"20_1": pending, "20_7": pending, "20_3": running},
		"?job_id=20_3,30%2B1": {"20_3": running, "30+1": running},
		"?job_id=20_7":        {"20_1": pending, "20_7": pending},
		"?job_id=30":          {"30+0": running, "30+1": running},
		"?job_id=13":          {},
	} {
		if d := cmp.Diff(want, statesOf(t, f, query)); d != "" {
			t.Errorf("%s: %s", query, d)
		}
	}
}
