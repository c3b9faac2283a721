package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"schedrestd/internal/errs"
)

// TestPendingCount checks how many tasks a record of an array stands for.
func TestPendingCount(t *testing.T) {
	for tasks, want := range map[string]int{"": 1, "7": 1, "0-39": 40, "0-38,45%4": 40, "1-9:2": 5, "1-3,7,9-10%1": 6, "1,3,5,...": 3} {
		j := Job{ArrayJob: Number{Set: true, Value: 12}, ArrayTasks: tasks}
		if got := j.PendingCount(); got != want {
			t.Errorf("%q: %d, want %d", tasks, got, want)
		}
	}
	if got := (&Job{ArrayJob: Number{Set: true, Value: 12}, ArrayTask: Number{Set: true, Value: 3}, ArrayTasks: "1-9"}).PendingCount(); got != 1 {
		t.Errorf("a task counts as %d", got)
	}
}

// TestForgottenJob checks that the client finds a job in accounting if the
// controller has forgotten the job.
func TestForgottenJob(t *testing.T) {
	c := dialTest(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slurm/v0.0.42/ping/":
			reply(200, `{}`)(w, r)
		case "/slurmdb/v0.0.42/job/7":
			reply(200, `{"jobs": [{"job_id": 7, "name": "old", "user": "ann", "state": {"current": ["FAILED"], "reason": "NonZeroExitCode"},
				"time": {"start": 100, "end": 160, "limit": {"set": true, "number": 5}}, "required": {"CPUs": 3},
				"exit_code": {"return_code": {"set": true, "number": 9}, "signal": {"id": {"set": false}}}}]}`)(w, r)
		default:
			reply(404, `{"errors": [{"error_number": 2017}]}`)(w, r)
		}
	}))
	jobs, err := c.Job(t.Context(), "7")
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	j := jobs[0]
	if j.Name != "old" || j.User != "ann" || j.BaseState() != "FAILED" || j.Elapsed(time.Now()) != time.Minute || j.ExitStatus() != 9 ||
		j.CPUs.Int() != 3 || j.TimeLimit.Int() != 5 || j.Active() {
		t.Errorf("%+v", j)
	}
}

// TestForgottenArray checks that the client accepts an array of any length from
// accounting.
func TestForgottenArray(t *testing.T) {
	const tasks = 10_000
	record := strings.Builder{}
	for i := range tasks {
		fmt.Fprintf(&record, `{"job_id": %d, "array": {"job_id": 7, "task_id": {"set": true, "number": %d}}, "working_directory": "/home/%s"},`, 7+i, i, strings.Repeat("d", 200))
	}
	for _, tt := range []struct {
		name, body string
		kind       errs.Kind
		jobs       int
	}{
		{"complete", `{"errors": [], "jobs": [` + strings.TrimSuffix(record.String(), ",") + `]}`, 0, tasks},
		{"cut off", `{"jobs": [` + record.String(), errs.BadAnswer, tasks},
		{"without the job", `{"jobs": []}`, errs.NotFound, 0},
		{"an error", `{"jobs": [], "errors": [{"error_number": 2000, "description": "no accounting"}]}`, errs.NotFound, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := dialTest(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/slurm/v0.0.45/ping/":
					reply(200, `{}`)(w, r)
				case "/slurmdb/v0.0.45/job/7":
					reply(200, tt.body)(w, r)
				default:
					reply(404, `{"errors": [{"error_number": 2017}]}`)(w, r)
				}
			}))
			jobs, err := c.Job(t.Context(), "7")
			if len(jobs) != tt.jobs || (err == nil) != (tt.kind == 0) || err != nil && errs.KindOf(err) != tt.kind {
				t.Errorf("%d jobs, %v", len(jobs), err)
			}
		})
	}
}

// TestCancel checks that Cancel uses the result in the body. The status is not
// enough, because slurmrestd answers 200 for a job that does not exist.
func TestCancel(t *testing.T) {
	for _, tt := range []struct {
		body string
		kind errs.Kind
		ok   bool
	}{
		{`{"status": [{"error": {"string": "", "code": 0}}], "errors": []}`, 0, true},
		{`{"errors": [], "warnings": []}`, 0, true},
		{`{"status": [{"error": {"string": "Invalid job id specified", "code": 2017}}], "errors": []}`, errs.NotFound, false},
		{`{"status": [{"error": {"string": "Job/step already completing or completed", "code": 2021}}]}`, errs.Conflict, false},
	} {
		var got *http.Request
		c := dialTest(t, apiHandler(func(w http.ResponseWriter, r *http.Request) { got = r; reply(200, tt.body)(w, r) }, "/slurm/v0.0.45/"))
		err := c.Cancel(t.Context(), "7", "USR1")
		if (err == nil) != tt.ok || err != nil && errs.KindOf(err) != tt.kind {
			t.Errorf("%s: %v", tt.body, err)
		}
		if got.Method != "DELETE" || got.URL.String() != "/slurm/v0.0.45/job/7?signal=USR1" || got.Header.Get("X-Slurm-User-Token") != token {
			t.Errorf("%s %s", got.Method, got.URL)
		}
	}
}

// TestTaskOfAnArray requests one task of an array. It checks that the client
// returns only the record that contains this task. A single record may contain
// several pending tasks.
func TestTaskOfAnArray(t *testing.T) {
	const body = `{"jobs": [
		{"job_id": 2, "array_job_id": {"set": true, "number": 2}, "array_task_id": {"set": false}, "array_task_string": "3-9,12%2"},
		{"job_id": 3, "array_job_id": {"set": true, "number": 2}, "array_task_id": {"set": true, "number": 1}}]}`
	c := dialTest(t, apiHandler(reply(200, body), "/slurm/v0.0.45/"))
	for id, want := range map[string]string{"2": "2_[3-9,12%2] 2_1", "2_1": "2_1", "2_5": "2_[3-9,12%2]", "2_12": "2_[3-9,12%2]", "2_10": "", "2_2": ""} {
		jobs, err := c.Job(t.Context(), id)
		var got []string
		for i := range jobs {
			got = append(got, jobs[i].Label())
		}
		if strings.Join(got, " ") != want || (want == "") != (errs.KindOf(err) == errs.NotFound) {
			t.Errorf("%s: %v, %v; want %s", id, got, err, want)
		}
	}
}

// TestComponents requests a heterogeneous job and its components.
func TestComponents(t *testing.T) {
	const body = `{"jobs": [
		{"job_id": 2, "het_job_id": {"set": true, "number": 2}, "het_job_offset": {"set": true, "number": 0}},
		{"job_id": 3, "het_job_id": {"set": true, "number": 2}, "het_job_offset": {"set": true, "number": 1}}]}`
	serve := reply(200, body)
	c := dialTest(t, apiHandler(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.EscapedPath(), "+") {
			w.WriteHeader(400) // as slurmrestd does
			return
		}
		serve(w, r)
	}, "/slurm/v0.0.45/"))
	for id, want := range map[string]string{"2": "2+0 2+1", "2+0": "2+0", "2+1": "2+1", "2+2": "", "2_1": ""} {
		jobs, err := c.Job(t.Context(), id)
		var got []string
		for i := range jobs {
			if got = append(got, jobs[i].Label()); !jobs[i].Selects(id) {
				t.Errorf("%s: not selected", id)
			}
		}
		if strings.Join(got, " ") != want || (want == "") != (errs.KindOf(err) == errs.NotFound) {
			t.Errorf("%s: %v, %v; want %s", id, got, err, want)
		}
	}
}

// TestExitStatus checks the exit status for jobs with different results.
func TestExitStatus(t *testing.T) {
	for text, want := range map[string]int{
		`{"job_state": ["COMPLETED"], "exit_code": {"return_code": {"set": true, "number": 0}}}`: 0,
		`{"job_state": "COMPLETED"}`: 0,
		`{"job_state": ["FAILED"], "exit_code": {"return_code": {"set": true, "number": 7}, "signal": {"id": {"set": false, "number": 0}}}}`:        7,
		`{"job_state": ["FAILED"], "exit_code": {"return_code": {"set": true, "number": 256}}}`:                                                     1,
		`{"job_state": ["CANCELLED"], "exit_code": {"return_code": {"set": false}, "signal": {"id": {"set": true, "number": 15}, "name": "TERM"}}}`: 143,
		`{"job_state": ["CANCELLED"], "exit_code": {"return_code": {"set": true, "number": 0}}}`:                                                    1,
		`{"job_state": ["TIMEOUT"]}`: 1,
		`{}`:                         1,
	} {
		var j Job
		if err := json.Unmarshal([]byte(text), &j); err != nil || j.ExitStatus() != want {
			t.Errorf("%s: %d, %v; want %d", text, j.ExitStatus(), err, want)
		}
	}
}

// TestJobIDs checks which strings are accepted as job ids. This is important
// because an id becomes part of a path.
func TestJobIDs(t *testing.T) {
	for text, ok := range map[string]bool{"1": true, "12_3": true, "12+0": true, "12+3": true, "+1": false, "12+": false, "12+1_2": false, "4294967295": true, "": false, "0": false, "-1": false, "1/../2": false, "a": false,
		"1_": false, "1_2_3": false, "1\n": false, "12345678901": false} {
		if err := CheckJobID(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestElapsed checks the run time of jobs, some of which were suspended.
func TestElapsed(t *testing.T) {
	n := func(v float64) Number { return Number{Set: v != 0, Value: v} }
	for _, tt := range []struct {
		name string
		job  Job
		want time.Duration // at 1000 s
	}{
		{"waits, with an expected start", Job{State: Words{"PENDING"}, Started: n(900)}, 0},
		{"runs", Job{State: Words{"RUNNING"}, Started: n(900), Ended: n(5000)}, 100 * time.Second},
		{"has ended", Job{State: Words{"FAILED"}, Started: n(900), Ended: n(950)}, 50 * time.Second},
		{"is suspended", Job{State: Words{"SUSPENDED"}, Started: n(900), Ended: n(5000), Suspended: n(930), RanBefore: n(30)}, 30 * time.Second},
		{"was resumed", Job{State: Words{"RUNNING"}, Started: n(900), Ended: n(5000), Suspended: n(990), RanBefore: n(30)}, 40 * time.Second},
		{"was resumed and has ended", Job{State: Words{"COMPLETED"}, Started: n(900), Ended: n(995), Suspended: n(990), RanBefore: n(30)}, 35 * time.Second},
		{"is in accounting", Job{State: Words{"COMPLETED"}, Started: n(900), Ended: n(995), RunTime: n(7)}, 7 * time.Second},
	} {
		if got := tt.job.Elapsed(time.Unix(1000, 0)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
