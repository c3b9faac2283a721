package integration

import (
	"fmt"
	"strings"
	"testing"
)

// TestPrivateData: the controller and the accounting daemon show a user the same of others' jobs.
func TestPrivateData(t *testing.T) {
	needRoot(t)
	const ours = "text of mine"
	for _, tt := range []struct {
		private string // PrivateData=
		jobs    bool   // whether others see them
		nodes   int    // status of the list
		parts   int
	}{
		{private: "", nodes: 200, parts: 200},
		{private: "none", jobs: true, nodes: 200, parts: 200},
		{private: "users,nodes", jobs: true, nodes: 403, parts: 200},
		{private: "all", nodes: 403, parts: 403},
	} {
		t.Run(tt.private, func(t *testing.T) {
			l := newLab(t, func(l *lab) { l.Private = tt.private })
			id := l.submit("sleep 600", map[string]any{"comment": ours, "extra": ours, "admin_comment": ours})
			defer l.ask("DELETE", fmt.Sprintf("/sched/%s/job/%d", version, id), "")
			eventually(t, "the job runs and is recorded", func() bool {
				return strings.Contains(l.ask("GET", fmt.Sprintf("/scheddb/%s/job/%d", version, id), "").text, "RUNNING")
			})
			other := "X-SCHED-USER-TOKEN: " + l.token(someUser(t).name)
			ask := func(method, path string) answer {
				return l.ask(method, fmt.Sprintf(path, version), "", other)
			}
			one := fmt.Sprintf("job/%d", id)
			for _, path := range []string{"/sched/%s/jobs", "/sched/%s/jobs/state", "/sched/%s/" + one, "/scheddb/%s/jobs", "/scheddb/%s/" + one} {
				a := ask("GET", path)
				if shown := len(a.list("jobs")) == 1; shown != tt.jobs {
					t.Errorf("%s: %d: %s", path, a.status, a.text)
				}
				if strings.Contains(a.text, ours) && !tt.jobs {
					t.Errorf("%s shows texts of another user's job: %s", path, a.text)
				}
			}
			for path, status := range map[string]int{"/sched/%s/nodes": tt.nodes, "/sched/%s/partitions": tt.parts, "/sched/%s/ping": 200, "/sched/%s/diag": 200} {
				if a := ask("GET", path).want(t, status); strings.Contains(a.text, ours) {
					t.Errorf("%s: %s", path, a.text)
				}
			}
			refused := 404
			if tt.jobs {
				refused = 403
			}
			ask("DELETE", "/sched/%s/"+one).want(t, refused)
			if a := l.job(id); !strings.Contains(a.text, ours) || a.state() != "RUNNING" {
				t.Errorf("the owner sees %s", a.text)
			}
		})
	}
}
