package handlers

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

func TestRequeue(t *testing.T) {
	gone := &errs.Error{Kind: errs.NotFound, Message: "there is no such job", Number: 2017}
	lost := &errs.Error{Kind: errs.BadAnswer, Message: "no answer", Code: errs.OutcomeUnknown}
	for _, tt := range []struct {
		name, method, path, body string
		errs                     map[string]error
		status                   int
		calls                    []string
		wantText                 string
	}{
		{name: "one", method: "GET", path: "/job/12/requeue", status: 200, calls: []string{"requeue 12 0x0"}, wantText: `"status":[]`},
		{name: "one, held", method: "GET", path: "/job/12_3/requeue?Hold=true&SpecialExit=true", status: 200, calls: []string{"requeue 12_3 0x1800"}},
		{name: "special without hold", method: "GET", path: "/job/12/requeue?SpecialExit=true", status: 422, wantText: "query/SpecialExit"},
		{name: "HEAD changes nothing", method: "HEAD", path: "/job/12/requeue", status: 405},
		{name: "unknown", method: "GET", path: "/job/99/requeue", errs: map[string]error{"99": gone}, status: 404, calls: []string{"requeue 99 0x0"}, wantText: "job 99: there is no such job"},
		{name: "several", method: "POST", path: "/jobs/requeue", body: `{"jobs": ["12", "13_1"], "flags": ["Incomplete"]}`, status: 200, calls: []string{"requeue 12 0x1", "requeue 13_1 0x1"}, wantText: `"error_code":0`},
		{name: "a text", method: "POST", path: "/jobs/requeue", body: `{"jobs": "12,13"}`, status: 200, calls: []string{"requeue 12 0x0", "requeue 13 0x0"}},
		{name: "one of several", method: "POST", path: "/jobs/requeue", body: `{"jobs": ["99", "12"]}`, errs: map[string]error{"99": gone}, status: 200, calls: []string{"requeue 99 0x0", "requeue 12 0x0"}, wantText: "99 was not requeued: Invalid job id specified"},
		{name: "none of several", method: "POST", path: "/jobs/requeue", body: `{"jobs": ["98", "99"]}`, errs: map[string]error{"98": gone, "99": gone}, status: 404, calls: []string{"requeue 98 0x0", "requeue 99 0x0"}, wantText: "job 98: there is no such job"},
		{name: "none of several, each named", method: "POST", path: "/jobs/requeue", body: `{"jobs": ["98", "99"]}`, errs: map[string]error{"98": gone, "99": gone}, status: 404, calls: []string{"requeue 98 0x0", "requeue 99 0x0"}, wantText: "job 99: there is no such job"},
		{name: "lost after a refusal", method: "POST", path: "/jobs/requeue", body: `{"jobs": ["99", "13", "14"]}`, errs: map[string]error{"99": gone, "13": lost}, status: 502, calls: []string{"requeue 99 0x0", "requeue 13 0x0"}, wantText: "job 99: there is no such job"},
		{name: "lost after the first", method: "POST", path: "/jobs/requeue", body: `{"jobs": ["12", "13", "14"]}`, errs: map[string]error{"13": lost}, status: 200, calls: []string{"requeue 12 0x0", "requeue 13 0x0"}, wantText: "14 was not requeued: Not tried"},
		{name: "lost", method: "POST", path: "/jobs/requeue", body: `{"jobs": ["13"]}`, errs: map[string]error{"13": lost}, status: 502, calls: []string{"requeue 13 0x0"}, wantText: "outcome_unknown"},
		{name: "no job", method: "POST", path: "/jobs/requeue", body: `{"jobs": []}`, status: 422, wantText: "#/jobs"},
		{name: "not a job", method: "POST", path: "/jobs/requeue", body: `{"jobs": ["all"]}`, status: 422, wantText: "#/jobs"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			f.taskResults, f.requeueErrs = nil, tt.errs
			w := serve(t, config(f), request(tt.method, "/slurm/v0.0.45"+tt.path, tt.body))
			calls := slices.DeleteFunc(f.calls, func(call string) bool { return call == "verify" })
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.wantText) {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
			if d := cmp.Diff(tt.calls, calls, cmp.Transformer("empty", func(l []string) string { return strings.Join(l, "; ") })); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestEmptyConditions checks that a condition with an empty value is refused.
// If the gateway dropped the condition, the request would also cancel jobs that
// the client does not mean.
func TestEmptyConditions(t *testing.T) {
	for _, name := range []string{"account", "job_name", "job_state", "nodes", "partition", "qos", "reservation", "user_id", "user_name", "wckey"} {
		for _, value := range []string{`""`, `" "`, `null`} {
			f := demo()
			body := fmt.Sprintf(`{"jobs": ["12"], %q: %s}`, name, value)
			w := serve(t, config(f), request(http.MethodDelete, "/slurm/v0.0.42/jobs", body))
			if w.Code != http.StatusUnprocessableEntity || len(f.killRequests) != 0 {
				t.Errorf("%s: status %d, requests %v: %s", body, w.Code, f.killRequests, w.Body)
			}
		}
	}
}

func TestDeleteJobs(t *testing.T) {
	some := model.Some[uint32]
	for _, tt := range []struct {
		name, body string
		status     int
		want       *model.KillJobs // nil if the controller must not be called
		wantText   string
	}{
		{name: "jobs", body: `{"jobs": ["12", "13_1"]}`, status: 200, want: &model.KillJobs{Jobs: []string{"12", "13_1"}, Signal: 9, Flags: 8}},
		{name: "a signal", body: `{"partition": "p", "signal": "USR1", "flags": ["BATCH_JOB"]}`, status: 200, want: &model.KillJobs{Partition: "p", Signal: 10, Flags: 1}},
		{name: "a state", body: `{"job_state": ["PENDING"]}`, status: 200, want: &model.KillJobs{State: model.Some(model.JobPending), Signal: 9, Flags: 8}},
		{name: "a user's name", body: `{"user_name": "bob", "partition": "p"}`, status: 200, want: &model.KillJobs{UserName: "bob", UserID: some(20002), Partition: "p", Signal: 9, Flags: 8}},
		{name: "a user's number", body: `{"user_id": "20002", "partition": "p"}`, status: 200, want: &model.KillJobs{UserName: "20002", UserID: some(20002), Partition: "p", Signal: 9, Flags: 8}},
		{name: "an unknown user", body: `{"user_name": "eve", "partition": "p"}`, status: 422},
		{name: "two users", body: `{"user_name": "bob", "user_id": "20001"}`, status: 422},
		{name: "two states", body: `{"job_state": ["PENDING", "RUNNING"]}`, status: 422},
		{name: "a flag for a state", body: `{"job_state": ["COMPLETING"]}`, status: 422},
		{name: "nothing", body: `{}`, status: 422},
		{name: "a signal alone", body: `{"signal": "KILL", "flags": ["FULL_JOB"]}`, status: 422},
		{name: "the signal 0, which ends no job", body: `{"partition": "p", "signal": 0}`, status: 200, want: &model.KillJobs{Partition: "p", Flags: 8}},
		{name: "the signal null", body: `{"partition": "p", "signal": null}`, status: 422},
		{name: "no jobs of a list", body: `{"jobs": [], "partition": "p"}`, status: 422},
		{name: "an unknown condition", body: `{"colour": "red"}`, status: 422},
		{name: "an unknown condition and a known one", body: `{"colour": "red", "partition": "p"}`, status: 422},
		{name: "an empty list of states", body: `{"job_state": [], "partition": "p"}`, status: 422},
		{name: "an empty list of nodes", body: `{"nodes": [], "partition": "p"}`, status: 422},
		{name: "an empty node", body: `{"nodes": [""], "partition": "p"}`, status: 422},
		{name: "an empty job", body: `{"jobs": [""]}`, status: 422, wantText: `"#/jobs"`},
		{name: "not a job", body: `{"jobs": ["12", "junk"]}`, status: 422, wantText: `got \"junk\"`},
		{name: "not quite a job", body: `{"jobs": ["12", "12x"]}`, status: 422, wantText: `"#/jobs/1"`},
		{name: "the job 0", body: `{"jobs": ["00_1"]}`, status: 422, wantText: `"#/jobs/0"`},
		{name: "several jobs in one", body: `{"jobs": ["12,13"]}`, status: 422, wantText: `"#/jobs/0"`},
		{name: "all forms of a job", body: `{"jobs": [" +12", "12_[1-9:2]", "12+1", "12.batch", "s9WSM8P2KG2B00"]}`, status: 200,
			want: &model.KillJobs{Jobs: []string{" +12", "12_[1-9:2]", "12+1", "12.batch", "s9WSM8P2KG2B00"}, Signal: 9, Flags: 8}},
		{name: "an empty state", body: `{"job_state": [""], "partition": "p"}`, status: 422},
		{name: "no body", status: 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			w := serve(t, config(f), request(http.MethodDelete, "/slurm/v0.0.42/jobs", tt.body))
			var got *model.KillJobs
			if len(f.killRequests) > 0 {
				got = f.killRequests[0]
			}
			if d := cmp.Diff(tt.want, got); w.Code != tt.status || d != "" || !strings.Contains(w.Body.String(), tt.wantText) {
				t.Errorf("status %d, %s: %s", w.Code, d, w.Body)
			}
		})
	}
}
