package server

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Limits on the log lines about clients, which could otherwise fill the disk.
// Each source has a limit of its own, so that many lines about one source do
// not hide another. Sources beyond mostThrottled share one limit.
const (
	throttleLines  = 20
	throttlePeriod = time.Minute
	mostThrottled  = 256
)

// throttle counts the log lines about each source, for throttlePeriod after the
// first line.
type throttle struct {
	mu      sync.Mutex
	sources map[source]*lines
}

type lines struct {
	written, left int
	over          *time.Timer
	report        func(left int)
}

// pass reports whether another line may be written about a source. If not, it
// counts the line. At the end of the period, report is called with the source
// and the number of lines that were not written.
func (t *throttle) pass(from source, report func(source, int)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, ok := t.sources[from]
	if !ok && len(t.sources) >= mostThrottled {
		from = source{}
		l, ok = t.sources[from]
	}
	if !ok {
		l = &lines{report: func(left int) { report(from, left) }}
		l.over = time.AfterFunc(throttlePeriod, func() { t.end(from, l) })
		if t.sources == nil {
			t.sources = map[source]*lines{}
		}
		t.sources[from] = l
	}
	if l.written >= throttleLines {
		l.left++
		return false
	}
	l.written++
	return true
}

// end removes a source. If lines about it were omitted, end reports their
// number.
func (t *throttle) end(from source, l *lines) {
	t.mu.Lock()
	if t.sources[from] == l {
		delete(t.sources, from)
	}
	left := l.left
	l.left = 0
	t.mu.Unlock()
	if left > 0 {
		l.report(left)
	}
}

// flush ends the periods of all sources.
func (t *throttle) flush() {
	t.mu.Lock()
	all := t.sources
	t.sources = nil
	t.mu.Unlock()
	for from, l := range all {
		l.over.Stop()
		t.end(from, l)
	}
}

// say logs an action of c's client, within the limits.
func (c *conn) say(level slog.Level, message string, args ...any) {
	s := c.server
	if !s.log().Enabled(context.Background(), level) || !s.talk.pass(c.origin(), s.leftOut) {
		return
	}
	args = append([]any{"peer", c.peerName(), "source", c.origin().String()}, args...)
	s.log().Log(context.Background(), level, message, args...)
}

// leftOut logs how many lines about a source were omitted.
func (s *Server) leftOut(from source, n int) {
	s.log().Warn("log lines left out", "lines", n, "period", throttlePeriod, "source", from.String())
}
