package api

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/integration/harness"
)

// TestPagesWhileWorkersDie follows the pages of a list, and kills the workers
// between two pages. Other workers must serve the next page, and a job that is
// there all the time must be in exactly one.
func TestPagesWhileWorkersDie(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	var want []int
	for i := range 20 {
		want = append(want, l.Submit("true", map[string]any{"name": fmt.Sprint("job", i), "hold": true}))
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var got []int
	for next := "?limit=3&fields=job_id"; next != ""; {
		var a harness.Answer
		harness.Eventually(t, "a worker answers", func() bool {
			var err error
			a, err = l.TryRequest(client, "GET", "/sched/v0.0.45/jobs"+next, "")
			return err == nil && a.Status == http.StatusOK
		})
		for _, one := range a.List("jobs") {
			got = append(got, int(one.(map[string]any)["job_id"].(float64)))
		}
		link := a.Header.Get("Link")
		next = strings.TrimSuffix(strings.TrimPrefix(link, "<"), `>; rel="next"`)
		for _, pid := range l.Workers() {
			harness.Must(t, syscall.Kill(pid, syscall.SIGKILL))
		}
		if len(got) == 9 { // while the pages are read, jobs come and go
			l.Request("DELETE", fmt.Sprintf("/sched/v0.0.45/job/%d", want[1]), "").Want(t, 200)
			want = append(want, l.Submit("true", map[string]any{"name": "late", "hold": true}))
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
