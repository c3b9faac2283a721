package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every endpoint in every version, with and without a trailing slash, as a user first meets them.
func TestSurface(t *testing.T) {
	l := newLab(t)
	for _, v := range []string{"v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"} {
		for _, slash := range []string{"", "/"} {
			t.Run(v+slash, func(t *testing.T) {
				l := &lab{Site: l.Site, t: t, url: l.url, work: l.work, userToken: l.userToken}
				path := func(plugin, rest string) string {
					rest, query, _ := strings.Cut(rest, "?")
					return strings.TrimSuffix("/"+plugin+"/"+v+"/"+rest+slash+"?"+query, "?")
				}

				a := l.ask("GET", path("sched", "ping"), "").want(t, 200)
				up := a.get("pings", 0, "pinged") == "UP" && a.get("pings", 0, "mode") == "primary"
				if v == "v0.0.45" { // has others for them
					up = a.get("pings", 0, "responding") == true && a.get("pings", 0, "primary") == true && a.get("pings", 0, "status") == "No error"
				}
				if a.get("pings", 0, "hostname") != l.Node || !up {
					t.Errorf("ping: %s", a.text)
				}
				for _, rest := range []string{"node/" + l.Node, "nodes"} {
					a = l.ask("GET", path("sched", rest), "").want(t, 200)
					if a.get("nodes", 0, "name") != l.Node || a.get("nodes", 0, "real_memory") == 0.0 || a.get("last_update", "set") != true {
						t.Errorf("%s: %s", rest, a.text)
					}
					if len(a.list("nodes", 0, "state")) == 0 {
						t.Errorf("%s has no state", rest)
					}
				}
				a = l.ask("POST", path("sched", "job/submit"), l.jobRequest("exit 3", map[string]any{"name": "n" + v})).want(t, 200)
				id := a.get("job_id")
				if step, ok := a.get("step_id").(string); !ok || step == "" || a.get("job_submit_user_msg") != "" {
					t.Errorf("submit: %s", a.text)
				}
				a = l.ask("GET", path("sched", fmt.Sprintf("job/%v", id)), "").want(t, 200)
				if a.get("jobs", 0, "job_id") != id || a.get("jobs", 0, "name") != "n"+v {
					t.Errorf("job: %s", a.text)
				}
				a = l.ask("GET", path("sched", fmt.Sprintf("jobs/state?job_id=%v", id)), "").want(t, 200)
				if a.get("jobs", 0, "job_id") != fmt.Sprint(id) || len(a.list("jobs", 0, "state")) == 0 {
					t.Errorf("state: %s", a.text)
				}
				a = l.ask("GET", path("sched", "partitions"), "").want(t, 200)
				name, _ := a.get("partitions", 0, "name").(string)
				if a.get("partitions", 0, "nodes", "configured") != l.Node || a.get("partitions", 0, "partition", "state", 0) != "UP" {
					t.Errorf("partitions: %s", a.text)
				}
				a = l.ask("GET", path("sched", "partition/"+name), "").want(t, 200)
				if a.get("partitions", 0, "name") != name {
					t.Errorf("partition %s: %s", name, a.text)
				}
				for _, nothing := range []string{"reservations", "licenses"} {
					a = l.ask("GET", path("sched", nothing), "").want(t, 200)
					if a.get(nothing) == nil || len(a.list(nothing)) != 0 || a.get("last_update", "set") != true {
						t.Errorf("%s: %s", nothing, a.text)
					}
				}
				if a = l.ask("GET", path("sched", "shares"), "").want(t, 200); a.get("shares", "shares") == nil {
					t.Errorf("shares: %s", a.text)
				}
				if a = l.ask("GET", path("sched", "diag"), "").want(t, 200); a.get("statistics", "jobs_submitted") == 0.0 {
					t.Errorf("diag: %s", a.text)
				}
				a = l.ask("GET", path("scheddb", "diag"), "").want(t, 200)
				if len(a.list("pings")) != 1 || a.get("statistics") == nil {
					t.Errorf("diag: %s", a.text)
				}
			})
		}
	}
}

func TestRequests(t *testing.T) {
	l := newLab(t)
	tests := []struct {
		name         string
		method, path string
		body         string
		status       int
		source       string // of the first error
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
			body: l.jobRequest("true", map[string]any{"tasks": "many"})},
		{name: "no script", method: "POST", path: "/sched/v0.0.43/job/submit", status: 422, body: l.jobRequest("", map[string]any{"script": nil})},
		{name: "no JSON", method: "POST", path: "/sched/v0.0.43/job/submit", status: 400, body: `{"job":`},
		{name: "no JSON object", method: "POST", path: "/sched/v0.0.43/job/submit", status: 422, body: `[]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := l.ask(test.method, test.path, test.body).want(t, test.status)
			if test.source != "" && a.get("errors", 0, "source") != test.source {
				t.Errorf("source of the error: %s", a.text)
			}
		})
	}
	if jobs := l.command(t, "show", "job"); strings.Count(jobs, "\n") != 1 {
		t.Errorf("a refused request left a job:\n%s", jobs)
	}
}

func TestOddSubmissions(t *testing.T) {
	l := newLab(t)
	t.Run("environment as an object", func(t *testing.T) {
		a := l.ask("POST", "/sched/v0.0.43/job/submit", l.jobRequest(`echo "$GREETING"`,
			map[string]any{"environment": map[string]string{"PATH": "/usr/bin:/bin", "GREETING": "good day"}})).want(t, 200)
		if a.get("warnings", 0, "source") != "#/job/environment/" || a.get("warnings", 0, "description") == "" {
			t.Errorf("warnings: %s", a.text)
		}
		id := int(a.get("job_id").(float64))
		l.end(id)
		if got := l.output(t, id); got != "good day\n" {
			t.Errorf("output %q", got)
		}
	})
	t.Run("a field that does not exist", func(t *testing.T) {
		a := l.ask("POST", "/sched/v0.0.43/job/submit", l.jobRequest("true", map[string]any{"colour": "blue"})).want(t, 200)
		if len(a.list("warnings")) != 1 || !strings.Contains(fmt.Sprint(a.get("warnings", 0, "source")), "colour") {
			t.Errorf("warnings: %s", a.text)
		}
	})
	t.Run("a token in the environment stays out of the job", func(t *testing.T) {
		a := l.ask("POST", "/sched/v0.0.43/job/submit", l.jobRequest("env",
			map[string]any{"environment": []string{"PATH=/usr/bin:/bin", "SCHED_JWT=planted", "SLURM_JWT=planted", "SEEN=yes"}})).want(t, 200)
		if told := fmt.Sprint(a.list("warnings"), a.get("job_submit_user_msg")); !strings.Contains(told, "token") {
			t.Errorf("not told of it: %s", a.text)
		}
		id := int(a.get("job_id").(float64))
		l.end(id)
		if got := l.output(t, id); strings.Contains(got, "planted") || !strings.Contains(got, "SEEN=yes") {
			t.Errorf("the job's environment:\n%s", got)
		}
	})
}

// output is what a job wrote.
func (l *lab) output(t *testing.T, id int) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.work, fmt.Sprintf("sched-%d.out", id)))
	must(t, err)
	return string(text)
}
