package jobs

import (
	"fmt"
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// TestPrivateData checks that the controller and the accounting daemon show a
// user the same information about other users' jobs.
func TestPrivateData(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	const ours = "text of mine"
	for _, tt := range []struct {
		private string // value of PrivateData=
		jobs    bool   // other users see the jobs
		nodes   int    // status of the list
		parts   int
	}{
		{private: "", nodes: 200, parts: 200},
		{private: "none", jobs: true, nodes: 200, parts: 200},
		{private: "users,nodes", jobs: true, nodes: 403, parts: 200},
		{private: "all", nodes: 403, parts: 403},
	} {
		t.Run(tt.private, func(t *testing.T) {
			l := harness.NewLab(t, func(l *harness.Lab) { l.PrivateData = tt.private })
			id := l.Submit("sleep 600", map[string]any{"comment": ours, "extra": ours, "admin_comment": ours})
			defer l.Ask("DELETE", fmt.Sprintf("/sched/%s/job/%d", harness.Version, id), "")
			harness.Eventually(t, "the job runs and is recorded", func() bool {
				return strings.Contains(l.Ask("GET", fmt.Sprintf("/scheddb/%s/job/%d", harness.Version, id), "").Text, "RUNNING")
			})
			other := "X-SCHED-USER-TOKEN: " + l.UserToken(harness.SomeUser(t).Name)
			ask := func(method, path string) harness.Answer {
				return l.Ask(method, fmt.Sprintf(path, harness.Version), "", other)
			}
			one := fmt.Sprintf("job/%d", id)
			for _, path := range []string{"/sched/%s/jobs", "/sched/%s/jobs/state", "/sched/%s/" + one, "/scheddb/%s/jobs", "/scheddb/%s/" + one} {
				a := ask("GET", path)
				if shown := len(a.List("jobs")) == 1; shown != tt.jobs {
					t.Errorf("%s: %d: %s", path, a.Status, a.Text)
				}
				if strings.Contains(a.Text, ours) && !tt.jobs {
					t.Errorf("%s shows texts of another user's job: %s", path, a.Text)
				}
			}
			for path, status := range map[string]int{"/sched/%s/nodes": tt.nodes, "/sched/%s/partitions": tt.parts, "/sched/%s/ping": 200, "/sched/%s/diag": 200} {
				if a := ask("GET", path).Want(t, status); strings.Contains(a.Text, ours) {
					t.Errorf("%s: %s", path, a.Text)
				}
			}
			refused := 404
			if tt.jobs {
				refused = 403
			}
			ask("DELETE", "/sched/%s/"+one).Want(t, refused)
			if a := l.Job(id); !strings.Contains(a.Text, ours) || a.State() != "RUNNING" {
				t.Errorf("the owner sees %s", a.Text)
			}
		})
	}
}
