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
	other := "X-SCHED-USER-TOKEN: " + l.UserToken(harness.SomeUser(t).Name)
	ask := func(status int, method, path, body string, headers ...string) harness.Answer {
		t.Helper()
		return l.Ask(method, "/sched/"+newest+"/"+path, body, headers...).Want(t, status)
	}
	id := l.Submit("sleep 600", map[string]any{"begin_time": time.Now().Add(time.Hour).Unix()})
	job := fmt.Sprintf("job/%d", id)
	look := func() harness.Answer { return l.Job(id) }
	state := func(want string) {
		t.Helper()
		harness.Eventually(t, want, func() bool { return look().State() == want })
	}
	for _, tt := range []struct {
		name, body string
		status     int
		as         string // header of the user
		path       []any  // path in the job to a value, and that value
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
		{"another user", `{"name": "x"}`, 403, other, []any{"name"}, "new"},
		{"what one machine lacks", `{"licenses": "x"}`, 501, "", []any{"licenses"}, ""},
		{"nonsense", `{"time_limit": {"set": true, "number": 0}}`, 422, "", []any{"time_limit", "number"}, 7.0},
	} {
		headers := []string{}
		if tt.as != "" {
			headers = append(headers, tt.as)
		}
		a := ask(tt.status, "POST", job, tt.body, headers...)
		if tt.status == 501 && !strings.Contains(a.Text, "can change only account") {
			t.Errorf("%s: %s", tt.name, a.Text)
		}
		if got := look().Get(append([]any{"jobs", 0}, tt.path...)...); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	ask(404, "POST", "job/99", `{"name": "x"}`)
	ask(404, "GET", "job/99/requeue", "")
	ask(409, "GET", job+"/requeue", "") // the job waits

	restart := func() {
		harness.Must(t, l.Daemons["schedctld"].Stop())
		l.Up(l.Ctld)
	}
	restart()
	if a := look(); a.Get("jobs", 0, "name") != "new" || a.Get("jobs", 0, "time_limit", "number") != 7.0 || a.Get("jobs", 0, "state_reason") != "JobHeldUser" {
		t.Errorf("after a restart: %s", a.Text)
	}
	ask(200, "POST", job, `{"hold": false}`)
	state("RUNNING")
	ask(403, "GET", job+"/requeue", "", other)
	ask(409, "POST", job, `{"hold": true}`)
	ask(200, "GET", job+"/requeue?Hold=true", "")
	state("PENDING")
	if a := look(); a.Get("jobs", 0, "restart_cnt") != 1.0 {
		t.Errorf("requeued: %s", a.Text)
	}
	restart()
	ask(200, "POST", job, `{"hold": false}`)
	state("RUNNING")

	second := l.Submit("sleep 600", map[string]any{"hold": true, "name": "victim"})
	ask(422, "DELETE", "jobs", `{}`)
	if a := ask(200, "DELETE", "jobs", `{"job_name": "victim"}`, other); !strings.Contains(strings.Join(strings.Fields(a.Text), ""), `"code":2002`) || l.Job(second).State() != "PENDING" {
		t.Errorf("another user cancels: %s", a.Text)
	}
	ask(200, "DELETE", "jobs", `{"job_name": "victim"}`)
	if s := l.Job(second).State(); s != "CANCELLED" {
		t.Errorf("state %s", s)
	}
	ask(200, "DELETE", "jobs", fmt.Sprintf(`{"jobs": ["%d"], "flags": ["VERBOSE"]}`, id))
	if s := l.AwaitEnd(id).State(); s != "CANCELLED" {
		t.Errorf("state %s", s)
	}
	ask(501, "GET", job+"/requeue", "") // its script is no longer stored
}

// TestAccountingChanges checks adding, changing, listing and removing
// accounting records over HTTP, with a restart of the daemon in between.
func TestAccountingChanges(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	l := harness.NewLab(t)
	user := harness.SomeUser(t).Name
	other := "X-SCHED-USER-TOKEN: " + l.UserToken(user)
	id := l.Submit("true", nil) // the job creates a record of its cluster
	harness.Eventually(t, "the cluster is recorded", func() bool {
		return len(l.Ask("GET", "/scheddb/"+newest+"/clusters", "").List("clusters")) == 1
	})
	l.AwaitEnd(id)
	cluster := fmt.Sprint(l.Ask("GET", "/scheddb/"+newest+"/clusters", "").Get("clusters", 0, "name"))
	fill := strings.NewReplacer("CLUSTER", cluster, "USER", user).Replace
	ask := func(status int, method, path, body string, headers ...string) harness.Answer {
		t.Helper()
		return l.Ask(method, "/scheddb/"+newest+"/"+fill(path), fill(body), headers...).Want(t, status)
	}
	count := func(path, list string, want int) {
		t.Helper()
		if a := ask(200, "GET", path, ""); len(a.List(list)) != want {
			t.Errorf("%s: %d, want %d: %s", path, len(a.List(list)), want, a.Text)
		}
	}
	const lab = `{"accounts": [{"name": "lab", "description": "d", "organization": "o"}]}`
	ask(403, "POST", "accounts", lab, other)
	ask(200, "POST", "accounts", lab)
	ask(200, "POST", "users", `{"users": [{"name": "USER"}]}`)
	ask(200, "POST", "qos", `{"qos": [{"name": "high", "description": "h", "priority": {"set": true, "number": 50}}]}`)
	ask(200, "POST", "associations", `{"associations": [{"account": "lab", "cluster": "CLUSTER", "user": "", "max": {"jobs": {"active": {"set": true, "number": 4}}}, "qos": ["high"]}, {"account": "lab", "cluster": "CLUSTER", "user": "USER"}]}`)
	ask(200, "POST", "accounts_association", `{"association_condition": {"accounts": ["bio"], "association": {"parent": "lab"}}}`)
	ask(200, "POST", "users_association", `{"association_condition": {"users": ["USER", "zoe"], "accounts": ["bio"]}, "user": {}}`)

	if a := ask(200, "GET", "association?account=bio&user=zoe&cluster=CLUSTER", ""); a.Get("associations", 0, "max", "jobs", "active", "number") != 4.0 ||
		a.Get("associations", 0, "qos", 0) != "high" || a.Get("associations", 0, "is_default") != true {
		t.Errorf("what zoe inherits from the account: %s", a.Text)
	}
	count("accounts", "accounts", 3)
	count("accounts?description=d", "accounts", 1)
	count("associations?account=bio", "associations", 3)
	count("users?default_account=lab", "users", 1)
	count("qos?name=high", "qos", 1)

	// Of the changes in one request, either all are made or none is.
	ask(200, "POST", "accounts", `{"accounts": [{"name": "lab", "description": "changed", "organization": "o"}]}`)
	ask(200, "POST", "qos", `{"qos": [{"name": "high", "priority": {"set": true, "number": 60}}]}`)
	ask(200, "POST", "users", `{"users": [{"name": "zoe", "administrator_level": ["Operator"]}]}`)
	ask(404, "POST", "associations", `{"associations": [{"account": "lab", "cluster": "CLUSTER", "user": "", "max": {"jobs": {"active": {"set": true, "number": 5}}}}, {"account": "lab", "cluster": "elsewhere", "user": ""}]}`)
	harness.Must(t, l.Daemons["scheddbd"].Stop())
	l.Up(l.DBD)
	for path, want := range map[string]string{"account/lab": `"description":"changed"`, "qos/high": `"number":60`, "user/zoe": `"Operator"`, "association?account=lab&user=&cluster=CLUSTER": `"number":4`} {
		if a := ask(200, "GET", path, ""); !strings.Contains(strings.Join(strings.Fields(a.Text), ""), want) {
			t.Errorf("%s after a restart: %s", path, a.Text)
		}
	}
	for path, list := range map[string]string{"users": "users", "associations?account=bio": "associations"} { // users see only themselves
		if a := ask(200, "GET", path, "", other); strings.Contains(a.Text, "zoe") || len(a.List(list)) == 0 {
			t.Errorf("%s by an ordinary user: %s", path, a.Text)
		}
	}
	ask(403, "DELETE", "qos/high", "", other)
	ask(403, "DELETE", "user/zoe", "", other)

	// Removals.
	ask(200, "DELETE", "user/zoe", "")
	ask(404, "DELETE", "user/zoe", "")
	ask(200, "DELETE", "qos/high", "")
	ask(404, "DELETE", "qos/high", "")
	ask(200, "DELETE", "association?account=bio&user=USER&cluster=CLUSTER", "")
	ask(200, "DELETE", "account/lab", "")
	ask(404, "DELETE", "account/lab", "")
	count("associations?account=lab", "associations", 0)
	count("associations?account=bio", "associations", 0)
	ask(403, "DELETE", "account/root", "")
	if a := ask(501, "POST", "wckeys", `{"wckeys": [{"name": "w", "cluster": "CLUSTER", "user": "USER"}]}`); !strings.Contains(a.Text, "does not support workload keys") {
		t.Error(a.Text)
	}
}
