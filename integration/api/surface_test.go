package api

import (
	"fmt"
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// TestSurface checks every endpoint in every version, with and without a
// trailing slash, as a new user would call it.
func TestSurface(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	for _, v := range harness.APIVersions {
		for _, slash := range []string{"", "/"} {
			t.Run(v+slash, func(t *testing.T) {
				l := &harness.Lab{Site: l.Site, T: t, URL: l.URL, Work: l.Work, OwnToken: l.OwnToken}
				path := func(plugin, rest string) string {
					rest, query, _ := strings.Cut(rest, "?")
					return strings.TrimSuffix("/"+plugin+"/"+v+"/"+rest+slash+"?"+query, "?")
				}

				a := l.Request("GET", path("sched", "ping"), "").Want(t, 200)
				up := a.Get("pings", 0, "pinged") == "UP" && a.Get("pings", 0, "mode") == "primary"
				if v >= "v0.0.45" { // which has other fields instead
					up = a.Get("pings", 0, "responding") == true && a.Get("pings", 0, "primary") == true && a.Get("pings", 0, "status") == "No error"
				}
				if a.Get("pings", 0, "hostname") != l.Node || !up {
					t.Errorf("ping: %s", a.Text)
				}
				for _, rest := range []string{"node/" + l.Node, "nodes"} {
					a = l.Request("GET", path("sched", rest), "").Want(t, 200)
					if a.Get("nodes", 0, "name") != l.Node || a.Get("nodes", 0, "real_memory") == 0.0 || a.Get("last_update", "set") != true {
						t.Errorf("%s: %s", rest, a.Text)
					}
					if len(a.List("nodes", 0, "state")) == 0 {
						t.Errorf("%s has no state", rest)
					}
				}
				a = l.Request("POST", path("sched", "job/submit"), l.JobRequest("exit 3", map[string]any{"name": "n" + v})).Want(t, 200)
				id := a.Get("job_id")
				if step, ok := a.Get("step_id").(string); !ok || step == "" || a.Get("job_submit_user_msg") != "" {
					t.Errorf("submit: %s", a.Text)
				}
				a = l.Request("GET", path("sched", fmt.Sprintf("job/%v", id)), "").Want(t, 200)
				if a.Get("jobs", 0, "job_id") != id || a.Get("jobs", 0, "name") != "n"+v {
					t.Errorf("job: %s", a.Text)
				}
				a = l.Request("GET", path("sched", fmt.Sprintf("jobs/state?job_id=%v", id)), "").Want(t, 200)
				if a.Get("jobs", 0, "job_id") != fmt.Sprint(id) || len(a.List("jobs", 0, "state")) == 0 {
					t.Errorf("state: %s", a.Text)
				}
				a = l.Request("GET", path("sched", "partitions"), "").Want(t, 200)
				name, _ := a.Get("partitions", 0, "name").(string)
				if a.Get("partitions", 0, "nodes", "configured") != l.Node || a.Get("partitions", 0, "partition", "state", 0) != "UP" {
					t.Errorf("partitions: %s", a.Text)
				}
				a = l.Request("GET", path("sched", "partition/"+name), "").Want(t, 200)
				if a.Get("partitions", 0, "name") != name {
					t.Errorf("partition %s: %s", name, a.Text)
				}
				for _, list := range []string{"reservations", "licenses"} {
					a = l.Request("GET", path("sched", list), "").Want(t, 200)
					if a.Get(list) == nil || len(a.List(list)) != 0 || a.Get("last_update", "set") != true {
						t.Errorf("%s: %s", list, a.Text)
					}
				}
				if a = l.Request("GET", path("sched", "shares"), "").Want(t, 200); a.Get("shares", "shares") == nil {
					t.Errorf("shares: %s", a.Text)
				}
				if a = l.Request("GET", path("sched", "diag"), "").Want(t, 200); a.Get("statistics", "jobs_submitted") == 0.0 {
					t.Errorf("diag: %s", a.Text)
				}
				a = l.Request("GET", path("scheddb", "diag"), "").Want(t, 200)
				if len(a.List("pings")) != 1 || a.Get("statistics") == nil {
					t.Errorf("diag: %s", a.Text)
				}
			})
		}
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	tests := []struct {
		name         string
		method, path string
		body         string
		status       int
		source       string // expected in the first error
	}{
		{name: "unknown node", method: "GET", path: "/sched/v0.0.43/node/nobody-knows-it", status: 404},
		{name: "unknown partition", method: "GET", path: "/sched/v0.0.43/partition/nobody-knows-it", status: 404},
		{name: "unknown reservation", method: "GET", path: "/sched/v0.0.43/reservation/nobody-knows-it", status: 404},
		{name: "not a job", method: "GET", path: "/sched/v0.0.43/jobs/state?job_id=all", status: 422, source: "query/job_id"},
		{name: "unknown job", method: "GET", path: "/sched/v0.0.43/job/4000000", status: 404},
		{name: "unknown path", method: "GET", path: "/sched/v0.0.43/nothing", status: 404},
		{name: "unknown version", method: "GET", path: "/sched/v0.0.39/ping", status: 404},
		{name: "wrong method", method: "GET", path: "/sched/v0.0.43/job/submit", status: 405},
		{name: "a text for a number", method: "POST", path: "/sched/v0.0.43/job/submit", status: 422, source: "#/job/tasks",
			body: l.JobRequest("true", map[string]any{"tasks": "many"})},
		{name: "no script", method: "POST", path: "/sched/v0.0.43/job/submit", status: 422, body: l.JobRequest("", map[string]any{"script": nil})},
		{name: "no JSON", method: "POST", path: "/sched/v0.0.43/job/submit", status: 400, body: `{"job":`},
		{name: "no JSON object", method: "POST", path: "/sched/v0.0.43/job/submit", status: 422, body: `[]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := l.Request(test.method, test.path, test.body).Want(t, test.status)
			if test.source != "" && a.Get("errors", 0, "source") != test.source {
				t.Errorf("source of the error: %s", a.Text)
			}
		})
	}
	if jobs := l.Schedctl(t, "show", "job"); strings.Count(jobs, "\n") != 1 {
		t.Errorf("a refused request left a job:\n%s", jobs)
	}
}

func TestOddSubmissions(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	t.Run("environment as an object", func(t *testing.T) {
		a := l.Request("POST", "/sched/v0.0.43/job/submit", l.JobRequest(`echo "$GREETING"`,
			map[string]any{"environment": map[string]string{"PATH": "/usr/bin:/bin", "GREETING": "good day"}})).Want(t, 200)
		if a.Get("warnings", 0, "source") != "#/job/environment/" || a.Get("warnings", 0, "description") == "" {
			t.Errorf("warnings: %s", a.Text)
		}
		id := int(a.Get("job_id").(float64))
		l.AwaitEnd(id)
		if got := l.Output(t, id); got != "good day\n" {
			t.Errorf("output %q", got)
		}
	})
	t.Run("a field that does not exist", func(t *testing.T) {
		a := l.Request("POST", "/sched/v0.0.43/job/submit", l.JobRequest("true", map[string]any{"colour": "blue"})).Want(t, 200)
		if len(a.List("warnings")) != 1 || !strings.Contains(fmt.Sprint(a.Get("warnings", 0, "source")), "colour") {
			t.Errorf("warnings: %s", a.Text)
		}
	})
	t.Run("a token in the environment stays out of the job", func(t *testing.T) {
		a := l.Request("POST", "/sched/v0.0.43/job/submit", l.JobRequest("env",
			map[string]any{"environment": []string{"PATH=/usr/bin:/bin", "SCHED_JWT=planted", "SLURM_JWT=planted", "SEEN=yes"}})).Want(t, 200)
		if messages := fmt.Sprint(a.List("warnings"), a.Get("job_submit_user_msg")); !strings.Contains(messages, "token") {
			t.Errorf("no warning about it: %s", a.Text)
		}
		id := int(a.Get("job_id").(float64))
		l.AwaitEnd(id)
		if got := l.Output(t, id); strings.Contains(got, "planted") || !strings.Contains(got, "SEEN=yes") {
			t.Errorf("the job's environment:\n%s", got)
		}
	})
}
