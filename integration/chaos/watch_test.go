package chaos

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/bundled/ctld/process"
	"schedrestd/integration/harness"
)

// chaosCount is a counter for concurrent use.
type chaosCount struct {
	mu sync.Mutex
	n  int
}

func (c *chaosCount) add(n int) { c.mu.Lock(); c.n += n; c.mu.Unlock() }
func (c *chaosCount) get() int  { c.mu.Lock(); defer c.mu.Unlock(); return c.n }

// chaosWatch watches the gateway's parent and dispatcher, which live as long as
// the gateway and hold descriptors for the other processes.
type chaosWatch struct {
	t         *testing.T
	parent    int
	watched   []*trackedProcess
	zombies   map[int]time.Time // since when each has been a zombie
	processes map[int]uint64    // maps the pid of every descendant of the parent seen so far to the time when the process started
}

// trackedProcess is a process and its resource use.
type trackedProcess struct {
	name         string
	pid          int
	baseline     usage // before the load
	final        usage
	earlySamples []usage
	lateSamples  []usage
}

// A usage is the resource use of a process: its descriptors (which only root
// can count), its anonymous memory in KiB, and its threads.
type usage struct{ descriptors, memory, threads int }

func newChaosWatch(t *testing.T, parent, dispatcher int) *chaosWatch {
	w := &chaosWatch{t: t, parent: parent, zombies: map[int]time.Time{}, processes: map[int]uint64{}}
	w.watched = []*trackedProcess{{name: "parent", pid: parent}, {name: "dispatcher", pid: dispatcher}}
	for _, p := range w.watched {
		harness.Eventually(t, "the "+p.name+" has nothing to do", func() bool {
			p.baseline = p.sample(t)
			time.Sleep(500 * time.Millisecond)
			return p.sample(t).descriptors == p.baseline.descriptors
		})
	}
	return w
}

func (p *trackedProcess) sample(t *testing.T) usage {
	status := harness.StatusOf(t, p.pid)
	number := func(name string) int {
		n, _ := strconv.Atoi(strings.TrimSuffix(status[name], " kB"))
		return n
	}
	m := usage{memory: number("RssAnon"), threads: number("Threads")}
	if os.Geteuid() == 0 { // only root can see the descriptors of these processes
		m.descriptors = harness.Descriptors(t, p.pid)
	}
	return m
}

// run samples the resource use until the load ends. Early samples are those
// from the third, fourth and fifth tenths of the duration. Late samples are
// those from the last three tenths.
func (w *chaosWatch) run(done <-chan struct{}, duration time.Duration) {
	start := time.Now()
	for tick := time.NewTicker(250 * time.Millisecond); ; {
		select {
		case <-done:
			tick.Stop()
			return
		case <-tick.C:
		}
		w.checkZombies()
		tenth := int(10 * time.Since(start) / duration)
		for _, p := range w.watched {
			switch {
			case tenth >= 2 && tenth < 5:
				p.earlySamples = append(p.earlySamples, p.sample(w.t))
			case tenth >= 7:
				p.lateSamples = append(p.lateSamples, p.sample(w.t))
			}
		}
	}
}

// checkZombies fails the test if a descendant stays a zombie for too long. It
// also records all descendants.
func (w *chaosWatch) checkZombies() {
	list, _ := process.Descendants(w.parent)
	before := w.zombies
	w.zombies = map[int]time.Time{}
	for _, st := range list {
		w.processes[st.PID] = st.Start
		if st.State != 'Z' {
			continue
		}
		since, ok := before[st.PID]
		if !ok {
			since = time.Now()
		}
		if w.zombies[st.PID] = since; time.Since(since) > chaosTimeout/2 {
			w.t.Errorf("child %d has been a zombie for %s", st.PID, time.Since(since))
			w.zombies[st.PID] = time.Now()
		}
	}
}

// mean returns the mean of all measures.
func mean(all []usage) (m usage) {
	for _, s := range all {
		m.descriptors, m.memory, m.threads = m.descriptors+s.descriptors, m.memory+s.memory, m.threads+s.threads
	}
	n := max(1, len(all))
	return usage{m.descriptors / n, m.memory / n, m.threads / n}
}

// checkGrowth fails the test if the parent or the dispatcher has grown too
// much. Under load, the number of descriptors may grow by 10% plus 16, the
// memory by 25% plus 4 MiB, and the number of threads by 8. (The 4 MiB are for
// Go's garbage collector, which does not run while the heap is smaller than
// that.)
//
// In ten minutes 600 workers are killed, so a descriptor or thread that leaks
// at each crash would exceed these limits. In less than a minute, the numbers
// depend more on how busy the machine is, and are not compared. After the load
// has ended, the number of descriptors must be no higher than before the load.
func (w *chaosWatch) checkGrowth(duration time.Duration) {
	w.t.Helper()
	for _, p := range w.watched {
		if duration >= time.Minute {
			p.checkGrowth(w.t)
		}
		harness.Eventually(w.t, fmt.Sprintf("the %s has no more than %d descriptors, as before", p.name, p.baseline.descriptors), func() bool {
			p.final = p.sample(w.t)
			return p.final.descriptors <= p.baseline.descriptors
		})
	}
	harness.Eventually(w.t, "no zombie is left", func() bool {
		w.checkZombies()
		return len(w.zombies) == 0
	})
}

func (p *trackedProcess) checkGrowth(t *testing.T) {
	t.Helper()
	early, late := mean(p.earlySamples), mean(p.lateSamples)
	if len(p.earlySamples) < 10 || len(p.lateSamples) < 10 {
		t.Errorf("the %s was measured %d and %d times", p.name, len(p.earlySamples), len(p.lateSamples))
	}
	if late.descriptors > early.descriptors*11/10+16 {
		t.Errorf("the %s had %d descriptors, and later %d", p.name, early.descriptors, late.descriptors)
	}
	if late.memory > early.memory*5/4+4<<10 {
		t.Errorf("the %s had %d KiB of memory, and later %d", p.name, early.memory, late.memory)
	}
	if late.threads > early.threads+8 {
		t.Errorf("the %s had %d threads, and later %d", p.name, early.threads, late.threads)
	}
}

func (w *chaosWatch) print(line func(string, any)) {
	for _, p := range w.watched {
		for _, m := range []struct {
			phase string
			usage
		}{{"before", p.baseline}, {"early", mean(p.earlySamples)}, {"late", mean(p.lateSamples)}, {"after", p.final}} {
			line("the "+p.name+" "+m.phase, fmt.Sprintf("%d descriptors, %d KiB, %d threads", m.descriptors, m.memory, m.threads))
		}
	}
}
