package chaos

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/ctld/process"
	"schedrestd/integration/harness"
)

// chaosCount is a counter for concurrent use.
type chaosCount struct {
	mu sync.Mutex
	n  int
}

func (c *chaosCount) add(n int) { c.mu.Lock(); c.n += n; c.mu.Unlock() }
func (c *chaosCount) get() int  { c.mu.Lock(); defer c.mu.Unlock(); return c.n }

// chaosWatch watches the gateway's parent.
type chaosWatch struct {
	t         *testing.T
	parent    int
	quiet     measure // before the load
	after     measure
	early     []measure
	late      []measure
	zombies   map[int]time.Time // since when each has been a zombie
	processes map[int]uint64    // all processes that ever were its children, and when they started
}

// measure is a process's resource use: descriptors (as root), its own memory in
// KiB, threads.
type measure struct{ descriptors, memory, threads int }

func newChaosWatch(t *testing.T, parent int) *chaosWatch {
	w := &chaosWatch{t: t, parent: parent, zombies: map[int]time.Time{}, processes: map[int]uint64{}}
	harness.Eventually(t, "the parent has nothing to do", func() bool {
		w.quiet = w.look()
		time.Sleep(500 * time.Millisecond)
		return w.look().descriptors == w.quiet.descriptors
	})
	return w
}

func (w *chaosWatch) look() measure {
	status := harness.StatusOf(w.t, w.parent)
	number := func(name string) int {
		n, _ := strconv.Atoi(strings.TrimSuffix(status[name], " kB"))
		return n
	}
	m := measure{memory: number("RssAnon"), threads: number("Threads")}
	if os.Geteuid() == 0 { // the parent hides its descriptors from other users
		m.descriptors = harness.Descriptors(w.t, w.parent)
	}
	return m
}

// run takes measures until the load ends. Measures from the third to the fifth
// tenth of the time count as early, and those from the last three tenths as
// late.
func (w *chaosWatch) run(over <-chan struct{}, lasts time.Duration) {
	began := time.Now()
	for tick := time.NewTicker(250 * time.Millisecond); ; {
		select {
		case <-over:
			tick.Stop()
			return
		case <-tick.C:
		}
		w.children()
		switch tenth := int(10 * time.Since(began) / lasts); {
		case tenth >= 2 && tenth < 5:
			w.early = append(w.early, w.look())
		case tenth >= 7:
			w.late = append(w.late, w.look())
		}
	}
}

// children fails the test if a descendant stays a zombie for long. It also
// records all descendants.
func (w *chaosWatch) children() {
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
		if w.zombies[st.PID] = since; time.Since(since) > chaosPatience/2 {
			w.t.Errorf("child %d has been a zombie since %s", st.PID, time.Since(since))
			w.zombies[st.PID] = time.Now()
		}
	}
}

// mean returns the mean of all measures.
func mean(all []measure) (m measure) {
	for _, s := range all {
		m.descriptors, m.memory, m.threads = m.descriptors+s.descriptors, m.memory+s.memory, m.threads+s.threads
	}
	n := max(1, len(all))
	return measure{m.descriptors / n, m.memory / n, m.threads / n}
}

// flat fails the test if the parent has grown. Under load, these increases are
// permitted: a tenth and 16 more descriptors, a quarter and 1 MiB more memory
// (the garbage collector's freedom in a heap of a few MiB), and 8 more threads.
// In ten minutes 600 workers are killed, so a leak at each crash would exceed
// these limits. Without load, there must be no more descriptors than before.
func (w *chaosWatch) flat() {
	w.t.Helper()
	early, late := mean(w.early), mean(w.late)
	if len(w.early) < 10 || len(w.late) < 10 {
		w.t.Errorf("the parent was measured %d and %d times", len(w.early), len(w.late))
	}
	if late.descriptors > early.descriptors*11/10+16 {
		w.t.Errorf("the parent had %d descriptors, and later %d", early.descriptors, late.descriptors)
	}
	if late.memory > early.memory*5/4+1<<10 {
		w.t.Errorf("the parent had %d KiB of memory, and later %d", early.memory, late.memory)
	}
	if late.threads > early.threads+8 {
		w.t.Errorf("the parent had %d threads, and later %d", early.threads, late.threads)
	}
	harness.Eventually(w.t, fmt.Sprintf("the parent has no more than %d descriptors, as before", w.quiet.descriptors), func() bool {
		w.after = w.look()
		return w.after.descriptors <= w.quiet.descriptors
	})
	harness.Eventually(w.t, "no zombie is left", func() bool {
		w.children()
		return len(w.zombies) == 0
	})
}

func (w *chaosWatch) each(line func(string, any)) {
	for _, m := range []struct {
		when string
		measure
	}{{"before", w.quiet}, {"early", mean(w.early)}, {"late", mean(w.late)}, {"after", w.after}} {
		line("the parent "+m.when, fmt.Sprintf("%d descriptors, %d KiB, %d threads", m.descriptors, m.memory, m.threads))
	}
}
