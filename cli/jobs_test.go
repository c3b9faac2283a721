package cli

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// arrayJobs has the tasks of an array of which the controller has split some off.
const arrayJobs = `{"jobs": [
 {"job_id": 30, "name": "a", "user_name": "ann", "partition": "cpu", "job_state": ["PENDING"], "state_reason": "Priority", "array_job_id": {"set": true, "number": 30}, "array_task_string": "4,6,8-11%2", "start_time": {"set": true, "number": 86400}},
 {"job_id": 31, "name": "a", "user_name": "ann", "partition": "cpu", "job_state": ["PENDING"], "state_reason": "JobHeldUser", "array_job_id": {"set": true, "number": 30}, "array_task_id": {"set": true, "number": 5}},
 {"job_id": 32, "name": "a", "user_name": "ann", "partition": "cpu", "job_state": ["PENDING"], "state_reason": "Priority", "array_job_id": {"set": true, "number": 30}, "array_task_id": {"set": true, "number": 7}, "start_time": {"set": true, "number": 86400}},
 {"job_id": 33, "name": "a", "user_name": "ann", "partition": "cpu", "job_state": ["RUNNING"], "array_job_id": {"set": true, "number": 30}, "array_task_id": {"set": true, "number": 1}, "start_time": {"set": true, "number": 3600}, "nodes": "n1"},
 {"job_id": 34, "name": "a", "user_name": "ann", "partition": "cpu", "job_state": ["PENDING"], "state_reason": "JobHeldUser", "array_job_id": {"set": true, "number": 30}, "array_task_id": {"set": true, "number": 12}},
 {"job_id": 40, "name": "a", "user_name": "ann", "partition": "cpu", "job_state": ["PENDING"], "state_reason": "Priority", "array_job_id": {"set": true, "number": 40}, "array_task_string": "1,3,..."},
 {"job_id": 41, "name": "a", "user_name": "ann", "partition": "cpu", "job_state": ["PENDING"], "state_reason": "Priority", "array_job_id": {"set": true, "number": 40}, "array_task_id": {"set": true, "number": 5}}
]}`

// TestPendingTasks checks that pending tasks of an array have one line if nothing else
// in it differs, and that jobs are sorted by their actual or expected start.
func TestPendingTasks(t *testing.T) {
	t.Setenv("TZ", "UTC")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--columns", "jobid,nodelist"}, "30_[4,6-11%2]  (Priority)\n30_[5,12]      (JobHeldUser)\n30_1           n1\n40_[1,3,...]   (Priority)\n40_5           (Priority)\n"},
		{[]string{"--columns", "jobid"}, "30_[4-12%2]\n30_1\n40_[1,3,...]\n40_5\n"},
		{[]string{"--columns", "jobid,start,started", "--sort", "start", "--state", "PENDING,R"}, "30_1           1970-01-01T01:00:00  1970-01-01T01:00:00\n30_[4,6-11%2]  1970-01-02T00:00:00  -\n" +
			"30_[5,12]      -                    -\n40_[1,3,...]   -                    -\n40_5           -                    -\n"},
	} {
		status, out, errOut := runCommand(t, &gateway{jobs: arrayJobs}, append([]string{"jobs", "--no-header"}, tt.args...)...)
		if diff := gocmp.Diff(tt.want, out); diff != "" || status != 0 || errOut != "" {
			t.Errorf("%q: status %d, %s -want +got\n%s", tt.args, status, errOut, diff)
		}
	}
}
