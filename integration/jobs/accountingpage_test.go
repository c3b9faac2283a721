package jobs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// TestPagesOfAccounting checks that the pages of recorded jobs contain all jobs
// once, that scheddbd selects them, so that a list that is too long for one answer
// has pages, and that with PrivateData=jobs a user's pages contain the user's own
// jobs only.
func TestPagesOfAccounting(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	other := harness.OtherUser(t)
	const n = 51_000 // more than scheddbd sends without pages
	accounting := client.NewAccounting(client.Config{Cluster: "demo", Timeout: time.Minute, Accounting: []client.Address{{Name: l.Node, Network: "unix", Address: l.DbdSocket()}}})
	batch := make([]model.Job, 0, 10_000)
	for id := uint32(1); id <= n; id++ {
		j := model.Job{StepID: model.StepID{JobID: id}, SubmitTime: 1000, EndTime: 2000, State: model.JobComplete, Detailed: true,
			UserID: uint32(os.Geteuid()), UserName: l.Owner}
		if id%10_000 == 1 || id == n {
			j.UserID, j.UserName = other.UID, other.Name
		}
		if id%10_000 == 2 { // the number was used again
			batch = append(batch, j)
			j.SubmitTime = 3000
		}
		batch = append(batch, j)
		if len(batch) > 9_990 || id == n {
			harness.Must(t, accounting.RecordJobs(t.Context(), model.Credential{}, batch))
			batch = batch[:0]
		}
	}
	follow := func(query string, limit int, headers ...string) (ids []int) {
		t.Helper()
		path := "/scheddb/v0.0.45/jobs?fields=job_id" + query + fmt.Sprintf("&limit=%d", limit)
		for token := ""; ; {
			next := path
			if token != "" {
				next += "&continue=" + token
			}
			page := l.Request("GET", next, "", headers...).Want(t, 200)
			entries := page.List("jobs")
			if len(entries) > limit {
				t.Fatalf("%s: %d jobs", next, len(entries))
			}
			for i := range entries {
				ids = append(ids, int(page.Get("jobs", i, "job_id").(float64)))
			}
			var more bool
			if token, more = page.Get("meta", "continue").(string); !more {
				return ids
			}
		}
	}
	var all, others []int
	for id := 1; id <= n; id++ {
		if all = append(all, id); id%10_000 == 2 {
			all = append(all, id)
		}
		if id%10_000 == 1 || id == n {
			others = append(others, id)
		}
	}
	if a := l.Request("GET", "/scheddb/v0.0.45/jobs?fields=job_id", ""); a.Status != 422 {
		t.Errorf("without pages: status %d: %.300s", a.Status, a.Text)
	}
	if got := follow("", 1000); !slices.Equal(got, all) {
		t.Errorf("%d jobs, want %d", len(got), len(all))
	}
	if got := follow("&users="+other.Name, 2); !slices.Equal(got, others) {
		t.Errorf("jobs of %s: %v, want %v", other.Name, got, others)
	}
	token := "X-SCHED-USER-TOKEN: " + l.UserToken(other.Name)
	for _, query := range []string{"", "&users=" + l.Owner + "," + other.Name} {
		if got := follow(query, 2, token); !slices.Equal(got, others) {
			t.Errorf("pages of %s%s: %v, want %v", other.Name, query, got, others)
		}
	}
	if log := strings.Join(l.Daemons["scheddbd"].LastLines(100), "\n"); strings.Contains(log, "ERROR") {
		t.Errorf("scheddbd logged:\n%s", log)
	}
}
