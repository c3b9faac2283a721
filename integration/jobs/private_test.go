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
	const jobText = "text of mine"
	for _, tt := range []struct {
		private    string // value of PrivateData=
		jobs       bool   // other users see the jobs
		nodes      int    // status of the list
		partitions int
	}{
		{private: "", nodes: 200, partitions: 200},
		{private: "none", jobs: true, nodes: 200, partitions: 200},
		{private: "users,nodes", jobs: true, nodes: 403, partitions: 200},
		{private: "all", nodes: 403, partitions: 403},
	} {
		t.Run(tt.private, func(t *testing.T) {
			l := harness.NewLab(t, func(l *harness.Lab) { l.PrivateData = tt.private })
			id := l.Submit("sleep 600", map[string]any{"comment": jobText, "extra": jobText, "admin_comment": jobText})
			defer l.Request("DELETE", fmt.Sprintf("/sched/%s/job/%d", harness.Version, id), "")
			harness.Eventually(t, "the job runs and is recorded", func() bool {
				return strings.Contains(l.Request("GET", fmt.Sprintf("/scheddb/%s/job/%d", harness.Version, id), "").Text, "RUNNING")
			})
			otherHeader := "X-SCHED-USER-TOKEN: " + l.UserToken(harness.OrdinaryUser(t).Name)
			send := func(method, path string) harness.Answer {
				return l.Request(method, fmt.Sprintf(path, harness.Version), "", otherHeader)
			}
			jobPath := fmt.Sprintf("job/%d", id)
			for _, path := range []string{"/sched/%s/jobs", "/sched/%s/jobs/state", "/sched/%s/" + jobPath, "/scheddb/%s/jobs", "/scheddb/%s/" + jobPath} {
				a := send("GET", path)
				if visible := len(a.List("jobs")) == 1; visible != tt.jobs {
					t.Errorf("%s: %d: %s", path, a.Status, a.Text)
				}
				if strings.Contains(a.Text, jobText) && !tt.jobs {
					t.Errorf("%s shows texts of another user's job: %s", path, a.Text)
				}
			}
			for path, status := range map[string]int{"/sched/%s/nodes": tt.nodes, "/sched/%s/partitions": tt.partitions, "/sched/%s/ping": 200, "/sched/%s/diag": 200} {
				if a := send("GET", path).Want(t, status); strings.Contains(a.Text, jobText) {
					t.Errorf("%s: %s", path, a.Text)
				}
			}
			refused := 404
			if tt.jobs {
				refused = 403
			}
			send("DELETE", "/sched/%s/"+jobPath).Want(t, refused)
			if a := l.Job(id); !strings.Contains(a.Text, jobText) || a.State() != "RUNNING" {
				t.Errorf("the owner sees %s", a.Text)
			}
		})
	}
}
