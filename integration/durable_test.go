package integration

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

	"schedrestd/demo/site"
)

const (
	durableJobs    = 200
	durableClients = 16
)

// Every answered job is run exactly once, however often and whenever its controller dies.
func TestControllerKilled(t *testing.T) {
	t.Parallel()
	t.Run("by the clock", func(t *testing.T) {
		l := newLab(t)
		l.submitAll(t, func(while func(time.Duration, <-chan struct{})) {
			while(200*time.Millisecond, nil)
			l.daemons["schedctld"].Kill()
			l.up(l.ctld)
		})
	})
	// Between two writes that belong together, each time at another pass of the point.
	program := failing(t)
	for _, point := range []string{"accepted", "recorded", "prepared", "spawned", "started", "outcome", "finished"} {
		t.Run("at "+point, func(t *testing.T) {
			l := newLab(t, func(l *lab) { l.ctld.Path = program })
			pass := 0
			l.submitAll(t, func(while func(time.Duration, <-chan struct{})) {
				pass++
				l.daemons["schedctld"].Kill()
				l.ctld.Env = []string{fmt.Sprintf("SCHEDCTLD_FAILPOINT=%s:%d", point, 1+7*pass%23)}
				d, err := site.Start(l.ctld) // not up: it may die before it can answer
				must(t, err)
				l.daemons["schedctld"] = d
				while(time.Second, d.Ended()) // in the last pass there are no jobs left to bring it there
			})
		})
	}
}

// failing is a controller that dies at points named in its environment.
func failing(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "schedctld")
	build := exec.Command("go", "build", "-tags", "failpoint", "-o", path, "../cmd/schedctld")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// submitAll has clients submit jobs over REST until enough are answered, while disturb is called over and
// over; then it checks that each answered job wrote its number exactly once. What disturb is given waits so long, and on a machine that is
// too slow for it until one more is answered, unless the controller has ended or all is done.
func (l *lab) submitAll(t *testing.T, disturb func(while func(time.Duration, <-chan struct{}))) {
	t.Helper()
	ledger := filepath.Join(l.work, "ledger")
	must(t, os.WriteFile(ledger, nil, 0o666))
	must(t, os.Chmod(ledger, 0o666))
	body := l.jobRequest(`echo "$SCHED_JOB_ID" >>`+ledger, map[string]any{"standard_output": "/dev/null", "memory_per_cpu": 64})

	var left atomic.Int64
	left.Store(durableJobs)
	var mu sync.Mutex
	var answered []int
	var clients sync.WaitGroup
	for range durableClients {
		clients.Go(func() {
			for left.Add(-1) >= 0 {
				id, ok := l.submitUntilAnswered(t, body)
				if !ok {
					return
				}
				mu.Lock()
				answered = append(answered, id)
				mu.Unlock()
			}
		})
	}
	done := make(chan struct{})
	go func() { clients.Wait(); close(done) }()
	count := func() int { mu.Lock(); defer mu.Unlock(); return len(answered) }
	while := func(least time.Duration, ended <-chan struct{}) {
		before := count()
		for begun := time.Now(); time.Since(begun) < least || count() == before; {
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
			disturb(while)
		}
	}
	l.daemons["schedctld"].Kill()
	l.ctld.Env = nil
	l.up(l.ctld)
	l.checkLedger(t, ledger, answered)
}

// submitUntilAnswered submits one job, again as long as nothing was done or nobody can say.
func (l *lab) submitUntilAnswered(t *testing.T, body string) (id int, ok bool) {
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); {
		a, err := l.try(http.DefaultClient, "POST", "/sched/v0.0.43/job/submit", body)
		switch {
		case err != nil && t.Context().Err() != nil: // the test has failed elsewhere
			return 0, false
		case err != nil:
			t.Errorf("the gateway is gone: %v", err)
			return 0, false
		case a.status == 200:
			return int(a.get("job_id").(float64)), true
		case a.status < 500:
			t.Errorf("status %d: %s", a.status, a.text)
			return 0, false
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("no answer in five minutes")
	return 0, false
}

// checkLedger compares what was answered with what was run. Jobs that were not answered may
// have run, once; answered ones must have.
func (l *lab) checkLedger(t *testing.T, ledger string, answered []int) {
	t.Helper()
	if len(answered) != durableJobs {
		t.Errorf("%d jobs were answered, want %d", len(answered), durableJobs)
	}
	unique := map[int]bool{}
	for _, id := range answered {
		if unique[id] {
			t.Errorf("job %d was answered to two clients", id)
		}
		unique[id] = true
	}
	for _, id := range answered {
		if got := l.end(id).state(); got != "COMPLETED" {
			t.Errorf("job %d ended as %s", id, got)
		}
	}
	text, err := os.ReadFile(ledger)
	must(t, err)
	runs := map[int]int{}
	for word := range strings.FieldsSeq(string(text)) {
		id, err := strconv.Atoi(word)
		must(t, err)
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
