// Package throttle limits the log lines about each client, because a client can
// cause lines without limit, and could so fill the disk or hide other lines.
// Start with Allow, which a caller asks before it logs a line.
package throttle

import (
	"sync"
	"time"
)

// A Row describes a limit on log lines. All rows of this program are in the table
// of package limit.
type Row struct {
	Name, Process, Key string // what is limited, in each process of this kind, and what a source is

	Each    int           // lines about each source in a period
	All     int           // lines about all sources together in a period; 0 for no limit
	Sources int           // sources that have a limit of their own; all further sources share one limit
	Period  time.Duration // counted from the first line about a source
}

// A Throttle counts the log lines about each source, for example a user or a
// machine. Each source has its own limit, so that many lines about one source do
// not suppress lines about another. The zero value of S stands for all sources
// that share a limit.
type Throttle[S comparable] struct {
	Row
	Report func(src S, omitted int) // called at the end of a period in which lines were omitted; may be called concurrently

	mu      sync.Mutex // guards the fields below, and each lines
	sources map[S]*lines
	all     *lines // lines about all sources together; nil before the first one of a period
}

type lines struct {
	written, omitted int
	timer            *time.Timer
}

// Allow reports whether another line about a source may be written. If it
// returns false, it also counts the line as omitted.
func (t *Throttle[S]) Allow(src S) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = new(lines)
		t.all.timer = time.AfterFunc(t.Period, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.all = nil
		})
	}
	var shared S
	full := t.All > 0 && t.all.written >= t.All
	l, ok := t.sources[src]
	if !ok && (full || len(t.sources) >= t.Sources) {
		src = shared
		l, ok = t.sources[src]
	}
	if !ok {
		l = new(lines)
		l.timer = time.AfterFunc(t.Period, func() { t.expire(src, l) })
		if t.sources == nil {
			t.sources = map[S]*lines{}
		}
		t.sources[src] = l
	}
	if full || l.written >= t.Each {
		l.omitted++
		return false
	}
	l.written++
	t.all.written++
	return true
}

// expire ends the period of a source. If lines about the source were omitted,
// it reports their number.
func (t *Throttle[S]) expire(src S, l *lines) {
	t.mu.Lock()
	if t.sources[src] == l {
		delete(t.sources, src)
	}
	omitted := l.omitted
	l.omitted = 0
	t.mu.Unlock()
	if omitted > 0 {
		t.Report(src, omitted)
	}
}

// Flush ends the periods of all sources.
func (t *Throttle[S]) Flush() {
	t.mu.Lock()
	sources := t.sources
	t.sources = nil
	if t.all != nil {
		t.all.timer.Stop()
		t.all = nil
	}
	t.mu.Unlock()
	for src, l := range sources {
		l.timer.Stop()
		t.expire(src, l)
	}
}
