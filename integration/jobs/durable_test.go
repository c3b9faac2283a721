package jobs

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/bundled/demo/site"
	"schedrestd/integration/harness"
)

// durableJobs is the number of jobs that are submitted while the test kills the
// controller at intervals. jobsPerFailpoint is the number of jobs that are
// submitted while the controller kills itself at one failpoint. durableClients
// is the number of clients that submit the jobs.
//
// ctld.TestKilledAtFailpoints is a similar test without a gateway.
const (
	durableJobs      = 80
	jobsPerFailpoint = 10
	durableClients   = 4
)

// TestControllerKilled checks that every job whose submission was answered runs
// exactly once, no matter when and how often the controller is killed.
func TestControllerKilled(t *testing.T) {
	t.Parallel()
	t.Run("by the clock", func(t *testing.T) {
		t.Parallel()
		l := harness.NewLab(t)
		submitAll(l, t, durableJobs, func(wait func(time.Duration, <-chan struct{})) {
			wait(200*time.Millisecond, nil)
			l.Daemons["schedctld"].Kill()
			l.Up(l.Ctld)
		})
	})
	// Each failpoint is between two writes that belong together. In each run,
	// the controller kills itself after a different number of passes through
	// the failpoint.
	t.Run("at failpoints", func(t *testing.T) {
		t.Parallel()
		program := buildFailing(t)
		l := harness.NewLab(t, func(l *harness.Lab) { l.Ctld.Path = program })
		starts, deaths := 0, 0
		for _, point := range []string{"accepted", "recorded", "prepared", "spawned", "started", "outcome", "finished"} {
			submitAll(l, t, jobsPerFailpoint, func(wait func(time.Duration, <-chan struct{})) {
				l.Daemons["schedctld"].Kill()
				l.Ctld.Env = []string{fmt.Sprintf("SCHEDCTLD_FAILPOINT=%s:%d", point, 1+starts%3)}
				starts++
				d, err := site.Start(l.Ctld) // not Up, because the controller may exit before it can answer
				harness.Must(t, err)
				l.Daemons["schedctld"] = d
				wait(time.Second, d.Done()) // when few jobs are left, the controller may never reach the failpoint
				select {
				case <-d.Done():
					deaths++
				default:
				}
			})
		}
		if t.Logf("killed at a failpoint %d times in %d starts", deaths, starts); deaths == 0 {
			t.Error("the controller reached no failpoint")
		}
	})
}

// buildFailing builds a controller that kills itself at the failpoint named in
// its environment. It returns the program's path.
func buildFailing(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "schedctld")
	build := exec.Command("go", "build", "-tags", "failpoint", "-o", path, "./cmd/schedctld")
	build.Dir = harness.Root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// submitAll makes clients submit jobs over REST until the given number of
// submissions has been answered. Meanwhile it calls disturb repeatedly. Then it
// checks that each of these jobs wrote its number exactly once.
//
// The argument of disturb is a function that waits for a given time. On a slow
// machine, the function waits longer, until at least one more submission has
// been answered. It returns early if the controller has exited or all
// submissions have been answered.
func submitAll(l *harness.Lab, t *testing.T, jobs int, disturb func(wait func(time.Duration, <-chan struct{}))) {
	t.Helper()
	ledger := filepath.Join(l.Work, "ledger")
	harness.Must(t, os.WriteFile(ledger, nil, 0o666))
	harness.Must(t, os.Chmod(ledger, 0o666))
	body := l.JobRequest(`echo "$SCHED_JOB_ID" >>`+ledger, map[string]any{"standard_output": "/dev/null", "memory_per_cpu": 64})

	var remaining atomic.Int64
	remaining.Store(int64(jobs))
	var mu sync.Mutex
	var ids []int
	var clients sync.WaitGroup
	for range durableClients {
		clients.Go(func() {
			for remaining.Add(-1) >= 0 {
				id, ok := submitUntilAnswered(l, t, body)
				if !ok {
					return
				}
				mu.Lock()
				ids = append(ids, id)
				mu.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() { clients.Wait(); close(done) }()
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(ids) }
	wait := func(minimum time.Duration, ended <-chan struct{}) {
		before := count()
		for start := time.Now(); time.Since(start) < minimum || count() == before; {
			select {
			case <-done:
				return
			case <-ended:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
	for disturbing := true; disturbing; {
		select {
		case <-done:
			disturbing = false
		default:
			disturb(wait)
		}
	}
	l.Daemons["schedctld"].Kill()
	l.Ctld.Env = nil
	l.Up(l.Ctld)
	checkLedger(l, t, ledger, jobs, ids)
}

// submitUntilAnswered submits one job. It repeats the submission until the job
// is accepted and the result is known.
func submitUntilAnswered(l *harness.Lab, t *testing.T, body string) (id int, ok bool) {
	for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); {
		a, err := l.TryRequest(http.DefaultClient, "POST", "/sched/v0.0.43/job/submit", body)
		switch {
		case err != nil && t.Context().Err() != nil: // the test has failed in another goroutine
			return 0, false
		case err != nil:
			t.Errorf("the gateway is gone: %v", err)
			return 0, false
		case a.Status == 200:
			return int(a.Get("job_id").(float64)), true
		case a.Status < 500:
			t.Errorf("status %d: %s", a.Status, a.Text)
			return 0, false
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Error("no answer in ten minutes")
	return 0, false
}

// checkLedger checks how often each job ran. A job whose submission was
// answered must have run exactly once. Any other job must have run at most
// once.
func checkLedger(l *harness.Lab, t *testing.T, ledger string, jobs int, answered []int) {
	t.Helper()
	if len(answered) != jobs {
		t.Errorf("%d jobs were answered, want %d", len(answered), jobs)
	}
	unique := map[int]bool{}
	for _, id := range answered {
		if unique[id] {
			t.Errorf("job %d was answered to two clients", id)
		}
		unique[id] = true
	}
	for _, id := range answered {
		if got := l.AwaitEnd(id).State(); got != "COMPLETED" {
			t.Errorf("job %d ended as %s", id, got)
		}
	}
	text, err := os.ReadFile(ledger)
	harness.Must(t, err)
	runs := map[int]int{}
	for word := range strings.FieldsSeq(string(text)) {
		id, err := strconv.Atoi(word)
		harness.Must(t, err)
		runs[id]++
	}
	for id, n := range runs {
		if n > 1 {
			t.Errorf("job %d ran %d times", id, n)
		}
	}
	for _, id := range answered {
		if runs[id] == 0 {
			t.Errorf("job %d never ran", id)
		}
	}
}
