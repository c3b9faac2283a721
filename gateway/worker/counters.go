package worker

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// logCounters writes the counters to the log.
func (s *server) logCounters() {
	c, audit := s.counts, s.auditCounts
	forwarded, forgotten := s.table.ForwardedSources()
	taken, waiting := s.limiter.Places()
	slog.Info("counters",
		slog.Group("requests", "in_progress", taken, "waiting", waiting, "read", c.Requests.Total(), "unauthenticated", c.Unauthenticated.Total(), "paused", c.Paused.Total(),
			"rate", c.Limited.Total()+audit.Limited.Total(), "share", c.Share.Total(), "watch", c.WaitsRefused.Total(), "overloaded", c.Overloaded.Total()),
		slog.Group("watch", "requests", s.limiter.Parked()),
		slog.Group("malformed", "requests", c.BadRequests.Total(), "handshakes", c.Handshakes.Total(), "frames", c.Frames.Total(),
			"stalled", c.Stalled.Total()),
		slog.Group("offences", "reported", c.Reported.Total(), "unreported", c.Unreported.Total(),
			"forwarded_sources", forwarded, "forwarded_forgotten", forgotten),
		slog.Group("rates", "identities", s.limiter.Identities()),
		slog.Group("audit", "changes", audit.Changes.Total(), "unrecorded", audit.Unrecorded.Total()))
}

// counterLogPause is the minimum time between two log lines with the counters.
// With become_user, users can signal their own workers as often as they like.
const counterLogPause = time.Second

// counterSignals returns a channel that gets a signal when the counters should
// be logged. It must be called before the process enters its sandbox, which
// forbids the system call that signal.Notify makes.
func counterSignals() <-chan os.Signal {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	return signals
}

// logCountersOn logs the counters after each signal.
func (s *server) logCountersOn(signals <-chan os.Signal) {
	for range signals {
		s.logCounters()
		time.Sleep(counterLogPause)
	}
}
