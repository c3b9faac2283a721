package handlers

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/handlers/feed"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// tally is a worker whose counts can be read, and which keeps the observations of
// all requests. It is safe for concurrent use.
type tally struct {
	rest.NoWorker
	park func(stop func()) error // called for each request that waits; nil for none

	mu       sync.Mutex
	counts   map[feed.Count]int
	waits    int // requests that have begun to wait
	observed []rest.Observation
}

// counted returns a tally, and the option that makes a server use it.
func counted() (*tally, func(*Config)) {
	n := &tally{counts: map[feed.Count]int{}}
	return n, func(cfg *Config) { cfg.Worker = n }
}

func (n *tally) CountWatch(what feed.Count, by int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.counts[what] += by
	if what == feed.Waits && by > 0 {
		n.waits++
	}
}

func (n *tally) Observe(o rest.Observation) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.observed = append(n.observed, o)
}

func (n *tally) Park(ctx context.Context, user string, stop func()) (rest.Parked, error) {
	if n.park != nil {
		if err := n.park(stop); err != nil {
			return nil, err
		}
	}
	return n.NoWorker.Park(ctx, user, stop)
}

func (n *tally) of(what feed.Count) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts[what]
}

// await waits until a count has a value.
func (n *tally) await(t *testing.T, what feed.Count, want int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); n.of(what) != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("count %d is %d, want %d", what, n.of(what), want)
		}
	}
}

// awaitWait waits until a request has begun to wait.
func (n *tally) awaitWait(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		n.mu.Lock()
		waits := n.waits
		n.mu.Unlock()
		if waits > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no request waits")
		}
	}
}

// observations waits for the observations of this many requests.
func (n *tally) observations(t *testing.T, want int) []rest.Observation {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		n.mu.Lock()
		list := n.observed
		n.mu.Unlock()
		if len(list) >= want {
			return list
		}
	}
	t.Fatalf("no %d observations", want)
	return nil
}

// TestWaitCounts checks how requests that wait are counted, and that the time for
// which they wait does not count as the duration of the request.
func TestWaitCounts(t *testing.T) {
	t.Parallel()
	ends := []feed.Count{feed.WaitChanged, feed.WaitTimeout, feed.WaitStopped, feed.WaitLeft, feed.WaitFailed}
	var stopOne func() // of the last request that waits
	for _, tt := range []struct {
		name, path string
		park       func(stop func()) error
		do         func(l *living, h *rest.Server, leave func())
		want       feed.Count
		wakes      int
	}{
		{"a change", "jobs?wait=60s", nil, func(l *living, _ *rest.Server, _ func()) {
			l.change(func(f *fake) { f.jobs[0].State = model.JobComplete })
		}, feed.WaitChanged, 1},
		{"the end of a job", "job/7?wait=60s&until=ended", nil, func(l *living, _ *rest.Server, _ func()) {
			l.change(func(f *fake) { f.jobs[0].State = model.JobComplete })
		}, feed.WaitChanged, 1},
		{"the time is over", "jobs?wait=200ms", nil, func(*living, *rest.Server, func()) {}, feed.WaitTimeout, 0},
		{"the server stops", "jobs?wait=60s", nil, func(_ *living, h *rest.Server, _ func()) { h.StopWaiting("the gateway stops") }, feed.WaitStopped, 0},
		{"another client needs the connection", "jobs?wait=60s", func(stop func()) error {
			stopOne = stop
			return nil
		}, func(*living, *rest.Server, func()) { stopOne() }, feed.WaitStopped, 0},
		{"the client leaves", "jobs?wait=60s", nil, func(_ *living, _ *rest.Server, leave func()) { leave() }, feed.WaitLeft, 0},
		{"the credential is refused", "jobs?wait=60s", nil, func(l *living, _ *rest.Server, _ func()) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.refused = true
		}, feed.WaitFailed, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n, option := counted()
			n.park = tt.park
			l, h, url := newLiving(t, option)
			url += "/sched/v0.0.43/"
			current, _ := get(t, url+"jobs")
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-SCHED-USER-TOKEN", token)
			r.Header.Set("If-None-Match", current.Header.Get("ETag"))
			var answered sync.WaitGroup
			begun := time.Now()
			answered.Go(func() {
				if answer, err := http.DefaultClient.Do(r); err == nil {
					answer.Body.Close()
				}
			})
			n.awaitWait(t)
			waiting := time.Now()
			time.Sleep(50 * time.Millisecond)
			waited := time.Since(waiting)
			if n.of(feed.Waits) == 0 { // the time was over on a slow machine
				waited = 0
			}
			tt.do(l, h, leave)
			n.await(t, tt.want, 1)
			answered.Wait()
			o := n.observations(t, 2)[1]
			if took := time.Since(begun); o.Duration > took-waited {
				t.Errorf("duration %v of %v, of which the request has waited for at least %v", o.Duration, took, waited)
			}
			for _, end := range ends {
				if end != tt.want && n.of(end) != 0 {
					t.Errorf("also counted as %d", end)
				}
			}
			if n.of(feed.Waits) != 0 || n.of(feed.Wakes) != tt.wakes || n.of(feed.Readers) < 0 || n.of(feed.Readers) > 1 {
				t.Errorf("%d wait at the end; %d wake-ups, want %d; %d readers", n.of(feed.Waits), n.of(feed.Wakes), tt.wakes, n.of(feed.Readers))
			}
		})
	}
	t.Run("no place", func(t *testing.T) {
		n, option := counted()
		n.park = func(func()) error { return errs.New(errs.TooMany, "too many") }
		_, _, url := newLiving(t, option)
		current, _ := get(t, url+"/sched/v0.0.43/jobs")
		if answer, body := get(t, url+"/sched/v0.0.43/jobs?wait=60s", "If-None-Match", current.Header.Get("ETag")); answer.StatusCode != http.StatusTooManyRequests {
			t.Errorf("status %d: %s", answer.StatusCode, body)
		}
		for _, what := range append(ends, feed.Waits, feed.Wakes) {
			if n.of(what) != 0 {
				t.Errorf("count %d is %d, but the request has not waited", what, n.of(what))
			}
		}
	})
}

// TestEventCounts checks that each event that a client gets is counted, and that
// the time for which it follows changes does not count as the duration of the
// request.
func TestEventCounts(t *testing.T) {
	t.Parallel()
	n, option := counted()
	l, h, url := newLiving(t, option)
	begun := time.Now()
	next, _ := events(t, url+"/sched/v0.0.43/jobs?fields=job_id,job_state&partition=long", "Last-Event-ID", "unknown")
	want := func(name string, what feed.Count) {
		t.Helper()
		if got := next(); !strings.HasPrefix(got, name+" ") {
			t.Errorf("event %q, want %s", got, name)
		}
		n.await(t, what, 1)
	}
	want("reset", feed.EventReset)
	want("snapshot", feed.EventSnapshot)
	following := time.Now()
	l.change(func(f *fake) { f.jobs[1].State = model.JobRunning })
	want("changed", feed.EventChanged)
	l.change(func(f *fake) { f.jobs[0].Partition = "long" })
	want("added", feed.EventAdded)
	l.change(func(f *fake) { f.jobs[0].Partition = "debug" })
	want("removed", feed.EventRemoved)
	if n.of(feed.Streams) != 1 || n.of(feed.EventEnd) != 0 {
		t.Errorf("%d streams, %d ends, before the end", n.of(feed.Streams), n.of(feed.EventEnd))
	}
	followed := time.Since(following)
	h.StopWaiting("the gateway stops")
	want("end", feed.EventEnd)
	o := n.observations(t, 1)[0]
	if took := time.Since(begun); o.Duration > took-followed {
		t.Errorf("duration %v of %v, of which the client has followed changes for at least %v", o.Duration, took, followed)
	}
	if n.of(feed.Streams) != 0 || n.of(feed.WaitStopped) != 0 {
		t.Errorf("%d streams and %d waits at the end", n.of(feed.Streams), n.of(feed.WaitStopped))
	}
}
