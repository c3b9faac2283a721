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

// chaosWatch watches the gateway's parent and dispatcher, which live as long as
// the gateway and hold descriptors for the other processes.
type chaosWatch struct {
	t         *testing.T
	parent    int
	watched   []*watched
	zombies   map[int]time.Time // since when each has been a zombie
	processes map[int]uint64    // all processes that ever were its children, and when they started
}

// watched is a process and its resource use.
type watched struct {
	name  string
	pid   int
	quiet measure // before the load
	after measure
	early []measure
	late  []measure
}

// measure is a process's resource use: descriptors, which only root can count,
// its own memory in KiB, and threads.
type measure struct{ descriptors, memory, threads int }

func newChaosWatch(t *testing.T, parent, dispatcher int) *chaosWatch {
	w := &chaosWatch{t: t, parent: parent, zombies: map[int]time.Time{}, processes: map[int]uint64{}}
	w.watched = []*watched{{name: "parent", pid: parent}, {name: "dispatcher", pid: dispatcher}}
	for _, p := range w.watched {
		harness.Eventually(t, "the "+p.name+" has nothing to do", func() bool {
			p.quiet = p.look(t)
			time.Sleep(500 * time.Millisecond)
			return p.look(t).descriptors == p.quiet.descriptors
		})
	}
	return w
}

func (p *watched) look(t *testing.T) measure {
	status := harness.StatusOf(t, p.pid)
	number := func(name string) int {
		n, _ := strconv.Atoi(strings.TrimSuffix(status[name], " kB"))
		return n
	}
	m := measure{memory: number("RssAnon"), threads: number("Threads")}
	if os.Geteuid() == 0 { // these processes hide their descriptors from other users
		m.descriptors = harness.Descriptors(t, p.pid)
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
		tenth := int(10 * time.Since(began) / lasts)
		for _, p := range w.watched {
			switch {
			case tenth >= 2 && tenth < 5:
				p.early = append(p.early, p.look(w.t))
			case tenth >= 7:
				p.late = append(p.late, p.look(w.t))
			}
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

// flat fails the test if the parent or the dispatcher has grown. Under load,
// these increases are permitted: 10% plus 16 descriptors, 25% plus 4 MiB of
// memory (Go's garbage collector does not run in a smaller heap), and 8
// threads. In ten minutes 600 workers are killed, so a descriptor or thread
// that leaks at each crash would exceed these limits. After the load has ended,
// there must be no more descriptors than before it began.
func (w *chaosWatch) flat() {
	w.t.Helper()
	for _, p := range w.watched {
		p.flat(w.t)
	}
	harness.Eventually(w.t, "no zombie is left", func() bool {
		w.children()
		return len(w.zombies) == 0
	})
}

func (p *watched) flat(t *testing.T) {
	t.Helper()
	early, late := mean(p.early), mean(p.late)
	if len(p.early) < 10 || len(p.late) < 10 {
		t.Errorf("the %s was measured %d and %d times", p.name, len(p.early), len(p.late))
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
	harness.Eventually(t, fmt.Sprintf("the %s has no more than %d descriptors, as before", p.name, p.quiet.descriptors), func() bool {
		p.after = p.look(t)
		return p.after.descriptors <= p.quiet.descriptors
	})
}

func (w *chaosWatch) each(line func(string, any)) {
	for _, p := range w.watched {
		for _, m := range []struct {
			when string
			measure
		}{{"before", p.quiet}, {"early", mean(p.early)}, {"late", mean(p.late)}, {"after", p.after}} {
			line("the "+p.name+" "+m.when, fmt.Sprintf("%d descriptors, %d KiB, %d threads", m.descriptors, m.memory, m.threads))
		}
	}
}
