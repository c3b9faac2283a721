package worker

import (
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"schedrestd/gateway/worker/broker"
)

// counters counts events since this worker started. Only workers read requests,
// so each worker logs its own counters when it receives SIGUSR1.
type counters struct {
	requests               atomic.Uint64 // well-formed requests
	unauthenticated        atomic.Uint64 // requests that were answered 401
	paused, limited, share atomic.Uint64 // requests that were answered 429: source blocked, rate limit, concurrency limit of the user
	overloaded             atomic.Uint64 // requests that were answered 503: concurrency limit of the worker

	badRequests, handshakes, frames atomic.Uint64 // malformed input of HTTP/1, TLS and HTTP/2
	stalled                         atomic.Uint64 // streams that were reset because the client did not read the answer
	reported, unreported            atomic.Uint64 // offences reported to the dispatcher, and offences not reported because there were too many

	audit *broker.AuditCounts // what the auditor's client counts
}

// logCounters writes the counters to the log.
func (s *server) logCounters() {
	c, o := s.counts, s.offences
	forwarded, forgotten := o.forwarded.Len()
	slog.Info("counters",
		slog.Group("requests", "read", c.requests.Load(), "unauthenticated", c.unauthenticated.Load(), "paused", c.paused.Load(),
			"rate", c.limited.Load()+c.audit.Limited.Load(), "share", c.share.Load(), "overloaded", c.overloaded.Load()),
		slog.Group("malformed", "requests", c.badRequests.Load(), "handshakes", c.handshakes.Load(), "frames", c.frames.Load(),
			"stalled", c.stalled.Load()),
		slog.Group("offences", "reported", c.reported.Load(), "unreported", c.unreported.Load(),
			"forwarded_sources", forwarded, "forwarded_forgotten", forgotten),
		slog.Group("rates", "identities", s.limiter.rates.Len()),
		slog.Group("audit", "changes", c.audit.Changes.Load(), "unrecorded", c.audit.Unrecorded.Load()))
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
