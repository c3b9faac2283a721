package server

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// These constants limit the log lines about clients, because unlimited lines
// could fill the disk. Each source, which is a user or a machine, has its own
// limit, so that many lines about one source do not suppress lines about
// another. When there are more than maxThrottled sources, all further sources
// share one limit.
const (
	throttleLines  = 20
	throttlePeriod = time.Minute
	maxThrottled   = 256
)

// A throttle counts the log lines about each source (a user or a machine), from
// the first line until throttlePeriod has passed.
type throttle struct {
	mu      sync.Mutex
	sources map[source]*lines
}

type lines struct {
	written, omitted int
	timer            *time.Timer
	report           func(omitted int)
}

// allow reports whether another line about a source may be written. If it
// returns false, it also counts the line as omitted. If lines were omitted by
// the end of the period, the function report is called with the source and the
// number of these lines.
func (t *throttle) allow(src source, report func(source, int)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, ok := t.sources[src]
	if !ok && len(t.sources) >= maxThrottled {
		src = source{}
		l, ok = t.sources[src]
	}
	if !ok {
		l = &lines{report: func(omitted int) { report(src, omitted) }}
		l.timer = time.AfterFunc(throttlePeriod, func() { t.expire(src, l) })
		if t.sources == nil {
			t.sources = map[source]*lines{}
		}
		t.sources[src] = l
	}
	if l.written >= throttleLines {
		l.omitted++
		return false
	}
	l.written++
	return true
}

// expire ends the period of a source. If lines about the source were omitted,
// it reports their number.
func (t *throttle) expire(src source, l *lines) {
	t.mu.Lock()
	if t.sources[src] == l {
		delete(t.sources, src)
	}
	omitted := l.omitted
	l.omitted = 0
	t.mu.Unlock()
	if omitted > 0 {
		l.report(omitted)
	}
}

// flush ends the periods of all sources.
func (t *throttle) flush() {
	t.mu.Lock()
	sources := t.sources
	t.sources = nil
	t.mu.Unlock()
	for src, l := range sources {
		l.timer.Stop()
		t.expire(src, l)
	}
}

// logLimited logs a message about c's client, unless the limits forbid it.
func (c *conn) logLimited(level slog.Level, message string, args ...any) {
	s := c.server
	if !s.log().Enabled(context.Background(), level) || !s.logThrottle.allow(c.origin(), s.logOmitted) {
		return
	}
	args = append([]any{"peer", c.peerName(), "source", c.origin().String()}, args...)
	s.log().Log(context.Background(), level, message, args...)
}

// logOmitted logs how many lines about a source were omitted.
func (s *Server) logOmitted(src source, n int) {
	s.log().Warn("log lines left out", "lines", n, "period", throttlePeriod, "source", src.String())
}
