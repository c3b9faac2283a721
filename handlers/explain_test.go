package handlers

import (
	"encoding/json"
	"net/http"
	"testing"

	"schedrestd/model"
)

// TestExplain checks that jobs that wait or have failed are explained, if a client
// wants it, in lists and alone.
func TestExplain(t *testing.T) {
	f := demo()
	f.jobs = []model.Job{
		{StepID: model.StepID{JobID: 1}, State: model.JobPending, StateReason: 2, Dependency: "afterok:7"},
		{StepID: model.StepID{JobID: 2}, State: model.JobPending, StateReason: 53, QOS: "normal"},
		{StepID: model.StepID{JobID: 3}, State: model.JobRunning},
		{StepID: model.StepID{JobID: 4}, State: model.JobPending, StateReason: 4711, StateDescription: "the moon is full"},
		{StepID: model.StepID{JobID: 5}, State: model.JobTimeout, StateReason: 25},
		{StepID: model.StepID{JobID: 6}, State: model.JobCancelled, StateReason: 3}, // it has waited for resources
	}
	type explanation struct{ Why, Change, About string }
	want := map[uint32]*explanation{
		1: {"The job waits for other jobs.", "It can start when these are in the state that the dependency asks for.", "dependency afterok:7"},
		2: {"The user's jobs with this QOS that run are as many as the QOS permits.", "It starts when one of them has ended.", "QOS normal"},
		4: {Why: "the moon is full"},
		5: {Why: "The job ran for as long as its time limit.", Change: "Submit it with a longer time limit."},
	}
	for target, explains := range map[string]bool{
		"jobs?explain=true": true, "jobs": false, "jobs?explain=false": false, "jobs?explain=true&fields=job_id,explanation.why,explanation.change,explanation.about": true,
		"job/1?explain=true": true, "job/1": false, "job/3?explain=true": true,
	} {
		for _, segment := range []string{"sched", "slurm"} {
			w := serve(t, config(f), request(http.MethodGet, "/"+segment+"/v0.0.42/"+target, ""))
			var list struct {
				Jobs []struct {
					ID          uint32 `json:"job_id"`
					Explanation *explanation
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != http.StatusOK || len(list.Jobs) == 0 {
				t.Fatalf("%s: status %d, %v: %s", target, w.Code, err, w.Body)
			}
			for _, j := range list.Jobs {
				switch expected := want[j.ID]; {
				case !explains || expected == nil:
					if j.Explanation != nil {
						t.Errorf("%s: job %d: %+v", target, j.ID, j.Explanation)
					}
				case j.Explanation == nil || *j.Explanation != *expected:
					t.Errorf("%s: job %d: %+v", target, j.ID, j.Explanation)
				}
			}
		}
	}
}
