package jobs

import (
	"fmt"
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// TestQuota checks that a user who submits and cancels large jobs is throttled
// before the disk is full, and that other users are not throttled.
func TestQuota(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	l := harness.NewLab(t)
	userHeader := "X-SCHED-USER-TOKEN: " + l.UserToken(harness.OrdinaryUser(t).Name)
	submit := func(script string, headers ...string) harness.Answer {
		return l.Request("POST", "/sched/"+harness.Version+"/job/submit", l.JobRequest(script, map[string]any{"hold": true}), headers...)
	}
	large := "#" + strings.Repeat("x", 3<<20)
	var a harness.Answer
	n := 0
	for ; n < 100; n++ {
		if a = submit(large, userHeader); a.Status != 200 {
			break
		}
		l.Request("DELETE", "/sched/"+harness.Version+"/job/"+fmt.Sprint(a.Get("job_id")), "", userHeader).Want(t, 200)
	}
	if a.Want(t, 429); n < 5 || a.Get("errors", 0, "error_number") != 1804.0 || !strings.Contains(a.Text, "exceed 64 KiB a second; submit again in ") {
		t.Errorf("after %d jobs: %s", n, a.Text)
	}
	if a.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	submit(large).Want(t, 200)
}
