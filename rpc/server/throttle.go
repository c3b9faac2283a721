package server

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// So many lines about peers go to the log in so much time: strangers could fill the disk else.
const (
	throttleLines  = 20
	throttlePeriod = 10 * time.Second
)

// throttle counts lines.
type throttle struct {
	mu      sync.Mutex
	begun   time.Time
	lines   int
	dropped int
}

// pass tells whether one more line may be written, and how many were not since one last was.
func (t *throttle) pass(now time.Time) (ok bool, dropped int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.begun) >= throttlePeriod {
		t.begun, t.lines = now, 0
	}
	if t.lines >= throttleLines {
		t.dropped++
		return false, 0
	}
	t.lines++
	dropped, t.dropped = t.dropped, 0
	return true, dropped
}

// say logs what a peer did, who may do so as often as he likes.
func (s *Server) say(level slog.Level, message string, args ...any) {
	if !s.log().Enabled(context.Background(), level) {
		return
	}
	ok, dropped := s.talk.pass(time.Now())
	if !ok {
		return
	}
	if dropped > 0 {
		args = append(args, "lines left out before", dropped)
	}
	s.log().Log(context.Background(), level, message, args...)
}
