package handlers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"schedrestd/model"
)

// family returns a cluster with a heterogeneous job and an array. Two tasks of
// the array have records of their own, and the pending tasks share one.
func family() *fake {
	f := demo()
	f.jobs = []model.Job{
		{StepID: model.StepID{JobID: 20}, ArrayJobID: 20, ArrayTasks: "0x38", Name: "waiting"}, // tasks 3 to 5
		{StepID: model.StepID{JobID: 21}, ArrayJobID: 20, ArrayTaskID: model.Some[uint32](1), Name: "first"},
		{StepID: model.StepID{JobID: 25}, ArrayJobID: 20, ArrayTaskID: model.Some[uint32](0), Name: "none"},
		{StepID: model.StepID{JobID: 30}, HetJobID: 30, Name: "leader"},
		{StepID: model.StepID{JobID: 32}, HetJobID: 30, HetJobOffset: 1, Name: "second"},
		{StepID: model.StepID{JobID: 40}, Name: "alone"},
	}
	return f
}

// TestPartOfJob tests requests for a task of an array, or a component of a
// heterogeneous job. Clients use the ids that Slurm's commands print. If the
// task or component does not exist, the answer must be 404.
func TestPartOfJob(t *testing.T) {
	for path, want := range map[string]string{
		"20": "waiting first none", "21": "first", "21_1": "first", "20_1": "first", "20_0": "none", "20_*": "waiting first none", "020_01": "first",
		"20_3": "waiting", "20_5": "waiting", "30": "leader second", "30%2B0": "leader", "30+1": "second", "40": "alone",
		"20_2": "", "20_6": "", "20_2000000": "", "21_2": "", "40_0": "", "40%2B0": "", "30%2B2": "", "32%2B1": "", "20%2B1": "", "30_1": "", "41": "", "41_1": "",
		"0": "", "20_": "", "20_x": "", "20_-1": "", "20_4294967297": "", "4294967316": "", "20_1_1": "", "20_1+1": "", "20.0": "", "20_[0-1]": "", "%32%30_%31": "first", "20%20": "",
	} {
		f := family()
		w := serve(t, config(f), request(http.MethodGet, "/sched/v0.0.42/job/"+path, ""))
		var body struct {
			Jobs   []struct{ Name string }
			Errors []struct{ Source, Description string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, j := range body.Jobs {
			got = append(got, j.Name)
		}
		status := http.StatusOK
		if want == "" {
			status = http.StatusNotFound
		}
		if w.Code != status || strings.Join(got, " ") != want {
			t.Errorf("%s: status %d, %v; want %q: %v", path, w.Code, got, want, body.Errors)
		}
	}
}

// TestUnknownTask checks that the error for an unknown task or component names
// it.
func TestUnknownTask(t *testing.T) {
	for path, want := range map[string]string{"20_7": "there is no job 20 with a task 7", "30+5": "there is no job 30 with a component 5", "20_[1-2]": `there is no job "20_[1-2]"`} {
		w := serve(t, config(family()), request(http.MethodGet, "/sched/v0.0.42/job/"+path, ""))
		if got := w.Body.String(); !strings.Contains(got, fmt.Sprintf("%q", want)) || !strings.Contains(got, `"source":"path/job_id"`) {
			t.Errorf("%s: %s", path, got)
		}
	}
}
