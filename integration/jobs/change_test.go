package jobs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// newest is the API version that supports every change.
const newest = "v0.0.45"

// TestJobChanges checks changing, holding, releasing, requeueing and cancelling
// jobs over HTTP, with a restart of the controller in between.
func TestJobChanges(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	l := harness.NewLab(t, func(l *harness.Lab) { l.PrivateData = "none" }) // so that other users' changes get 403
	otherHeader := "X-SCHED-USER-TOKEN: " + l.UserToken(harness.OrdinaryUser(t).Name)
	send := func(status int, method, path, body string, headers ...string) harness.Answer {
		t.Helper()
		return l.Request(method, "/sched/"+newest+"/"+path, body, headers...).Want(t, status)
	}
	id := l.Submit("sleep 600", map[string]any{"begin_time": time.Now().Add(time.Hour).Unix()})
	job := fmt.Sprintf("job/%d", id)
	getJob := func() harness.Answer { return l.Job(id) }
	awaitState := func(want string) {
		t.Helper()
		harness.Eventually(t, want, func() bool { return getJob().State() == want })
	}
	for _, tt := range []struct {
		name, body string
		status     int
		userHeader string // header of the user
		path       []any  // path to a value in the job, which must be want
		want       any
	}{
		{"name", `{"name": "new"}`, 200, "", []any{"name"}, "new"},
		{"comment", `{"comment": "c"}`, 200, "", []any{"comment"}, "c"},
		{"time limit", `{"time_limit": {"set": true, "number": 7}}`, 200, "", []any{"time_limit", "number"}, 7.0},
		{"priority", `{"priority": {"set": true, "number": 9}}`, 200, "", []any{"priority", "number"}, 9.0},
		{"nice", `{"nice": 5}`, 200, "", []any{"nice"}, 5.0},
		{"hold", `{"hold": true}`, 200, "", []any{"state_reason"}, "JobHeldUser"},
		{"release", `{"hold": false}`, 200, "", []any{"state_reason"}, "BeginTime"},
		{"begin time", `{"begin_time": {"set": true, "number": 1}, "hold": true}`, 200, "", []any{"state_reason"}, "JobHeldUser"},
		{"another user", `{"name": "x"}`, 403, otherHeader, []any{"name"}, "new"},
		{"what one machine lacks", `{"licenses": "x"}`, 501, "", []any{"licenses"}, ""},
		{"nonsense", fmt.Sprintf(`{"time_limit": 8, "begin_time": %d}`, time.Now().AddDate(2, 0, 0).Unix()), 422, "", []any{"time_limit", "number"}, 7.0},
	} {
		headers := []string{}
		if tt.userHeader != "" {
			headers = append(headers, tt.userHeader)
		}
		a := send(tt.status, "POST", job, tt.body, headers...)
		if tt.status == 501 && !strings.Contains(a.Text, "can change only account") {
			t.Errorf("%s: %s", tt.name, a.Text)
		}
		if got := getJob().Get(append([]any{"jobs", 0}, tt.path...)...); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	send(404, "POST", "job/99", `{"name": "x"}`)
	send(404, "GET", "job/99/requeue", "")
	send(409, "GET", job+"/requeue", "") // the job waits

	restart := func() {
		harness.Must(t, l.Daemons["schedctld"].Stop())
		l.Up(l.Ctld)
	}
	restart()
	if a := getJob(); a.Get("jobs", 0, "name") != "new" || a.Get("jobs", 0, "time_limit", "number") != 7.0 || a.Get("jobs", 0, "state_reason") != "JobHeldUser" {
		t.Errorf("after a restart: %s", a.Text)
	}
	send(200, "POST", job, `{"hold": false}`)
	awaitState("RUNNING")
	send(403, "GET", job+"/requeue", "", otherHeader)
	send(409, "POST", job, `{"standard_output": "x"}`)
	send(200, "POST", job, `{"hold": true}`)
	awaitState("RUNNING")
	send(200, "GET", job+"/requeue?Hold=true", "")
	awaitState("PENDING")
	if a := getJob(); a.Get("jobs", 0, "restart_cnt") != 1.0 {
		t.Errorf("requeued: %s", a.Text)
	}
	restart()
	send(200, "POST", job, `{"hold": false}`)
	awaitState("RUNNING")

	second := l.Submit("sleep 600", map[string]any{"hold": true, "name": "victim"})
	send(422, "DELETE", "jobs", `{}`)
	if a := send(200, "DELETE", "jobs", `{"job_name": "victim"}`, otherHeader); !strings.Contains(strings.Join(strings.Fields(a.Text), ""), `"code":2002`) || l.Job(second).State() != "PENDING" {
		t.Errorf("another user cancels: %s", a.Text)
	}
	send(200, "DELETE", "jobs", `{"job_name": "victim"}`)
	if s := l.Job(second).State(); s != "CANCELLED" {
		t.Errorf("state %s", s)
	}
	send(200, "DELETE", "jobs", fmt.Sprintf(`{"jobs": ["%d"], "flags": ["VERBOSE"]}`, id))
	if s := l.AwaitEnd(id).State(); s != "CANCELLED" {
		t.Errorf("state %s", s)
	}
	send(501, "GET", job+"/requeue", "") // its script is no longer stored
}

// TestAccountingChanges checks adding, changing, listing and removing
// accounting records over HTTP, with a restart of the daemon in between.
func TestAccountingChanges(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	l := harness.NewLab(t)
	user := harness.OrdinaryUser(t).Name
	otherHeader := "X-SCHED-USER-TOKEN: " + l.UserToken(user)
	id := l.Submit("true", nil) // the job creates a record of its cluster
	harness.Eventually(t, "the cluster is recorded", func() bool {
		return len(l.Request("GET", "/scheddb/"+newest+"/clusters", "").List("clusters")) == 1
	})
	l.AwaitEnd(id)
	cluster := fmt.Sprint(l.Request("GET", "/scheddb/"+newest+"/clusters", "").Get("clusters", 0, "name"))
	fill := strings.NewReplacer("CLUSTER", cluster, "USER", user).Replace
	send := func(status int, method, path, body string, headers ...string) harness.Answer {
		t.Helper()
		return l.Request(method, "/scheddb/"+newest+"/"+fill(path), fill(body), headers...).Want(t, status)
	}
	checkCount := func(path, list string, want int) {
		t.Helper()
		if a := send(200, "GET", path, ""); len(a.List(list)) != want {
			t.Errorf("%s: %d, want %d: %s", path, len(a.List(list)), want, a.Text)
		}
	}
	const lab = `{"accounts": [{"name": "lab", "description": "d", "organization": "o"}]}`
	send(403, "POST", "accounts", lab, otherHeader)
	send(200, "POST", "accounts", lab)
	send(200, "POST", "users", `{"users": [{"name": "USER"}]}`)
	send(200, "POST", "qos", `{"qos": [{"name": "high", "description": "h", "priority": {"set": true, "number": 50}}]}`)
	send(200, "POST", "associations", `{"associations": [{"account": "lab", "cluster": "CLUSTER", "user": "", "max": {"jobs": {"active": {"set": true, "number": 4}}}, "qos": ["high"]}, {"account": "lab", "cluster": "CLUSTER", "user": "USER"}]}`)
	send(200, "POST", "accounts_association", `{"association_condition": {"accounts": ["bio"], "association": {"parent": "lab"}}}`)
	send(200, "POST", "users_association", `{"association_condition": {"users": ["USER", "zoe"], "accounts": ["bio"]}, "user": {}}`)

	if a := send(200, "GET", "association?account=bio&user=zoe&cluster=CLUSTER", ""); a.Get("associations", 0, "max", "jobs", "active", "number") != 4.0 ||
		a.Get("associations", 0, "qos", 0) != "high" || a.Get("associations", 0, "is_default") != true {
		t.Errorf("what zoe inherits from the account: %s", a.Text)
	}
	checkCount("accounts", "accounts", 3)
	checkCount("accounts?description=d", "accounts", 1)
	checkCount("associations?account=bio", "associations", 3)
	checkCount("users?default_account=lab", "users", 1)
	checkCount("qos?name=high", "qos", 1)

	// A request either makes all its changes or none.
	send(200, "POST", "accounts", `{"accounts": [{"name": "lab", "description": "changed", "organization": "o"}]}`)
	send(200, "POST", "qos", `{"qos": [{"name": "high", "priority": {"set": true, "number": 60}}]}`)
	send(200, "POST", "users", `{"users": [{"name": "zoe", "administrator_level": ["Operator"]}]}`)
	send(404, "POST", "associations", `{"associations": [{"account": "lab", "cluster": "CLUSTER", "user": "", "max": {"jobs": {"active": {"set": true, "number": 5}}}}, {"account": "lab", "cluster": "elsewhere", "user": ""}]}`)
	harness.Must(t, l.Daemons["scheddbd"].Stop())
	l.Up(l.DBD)
	for path, want := range map[string]string{"account/lab": `"description":"changed"`, "qos/high": `"number":60`, "user/zoe": `"Operator"`, "association?account=lab&user=&cluster=CLUSTER": `"number":4`} {
		if a := send(200, "GET", path, ""); !strings.Contains(strings.Join(strings.Fields(a.Text), ""), want) {
			t.Errorf("%s after a restart: %s", path, a.Text)
		}
	}
	for path, list := range map[string]string{"users": "users", "associations?account=bio": "associations"} { // users see only themselves
		if a := send(200, "GET", path, "", otherHeader); strings.Contains(a.Text, "zoe") || len(a.List(list)) == 0 {
			t.Errorf("%s by an ordinary user: %s", path, a.Text)
		}
	}
	send(403, "DELETE", "qos/high", "", otherHeader)
	send(403, "DELETE", "user/zoe", "", otherHeader)

	// Removals.
	send(200, "DELETE", "user/zoe", "")
	send(404, "DELETE", "user/zoe", "")
	send(200, "DELETE", "qos/high", "")
	send(404, "DELETE", "qos/high", "")
	send(200, "DELETE", "association?account=bio&user=USER&cluster=CLUSTER", "")
	send(200, "DELETE", "account/lab", "")
	send(404, "DELETE", "account/lab", "")
	checkCount("associations?account=lab", "associations", 0)
	checkCount("associations?account=bio", "associations", 0)
	send(403, "DELETE", "account/root", "")
	if a := send(501, "POST", "wckeys", `{"wckeys": [{"name": "w", "cluster": "CLUSTER", "user": "USER"}]}`); !strings.Contains(a.Text, "does not support workload keys") {
		t.Error(a.Text)
	}
}
