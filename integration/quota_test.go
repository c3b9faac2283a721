package integration

import (
	"fmt"
	"strings"
	"testing"
)

// TestQuota: a user who submits and cancels large jobs has to wait before the disk is full, and other users need not.
func TestQuota(t *testing.T) {
	needRoot(t)
	l := newLab(t)
	games := "X-SCHED-USER-TOKEN: " + l.token(someUser(t).name)
	submit := func(script string, headers ...string) answer {
		return l.ask("POST", "/sched/"+version+"/job/submit", l.jobRequest(script, map[string]any{"hold": true}), headers...)
	}
	large := "#" + strings.Repeat("x", 3<<20)
	var a answer
	n := 0
	for ; n < 100; n++ {
		if a = submit(large, games); a.status != 200 {
			break
		}
		l.ask("DELETE", "/sched/"+version+"/job/"+fmt.Sprint(a.get("job_id")), "", games).want(t, 200)
	}
	if a.want(t, 429); n < 5 || a.get("errors", 0, "error_number") != 1804.0 || !strings.Contains(a.text, "exceed 64 KiB a second; submit again in ") {
		t.Errorf("after %d jobs: %s", n, a.text)
	}
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	submit(large).want(t, 200)
}
