package pool

import (
	"log/slog"

	"schedrestd/gateway/dispatcher/dial"
	"schedrestd/internal/penalty"
)

// counters counts events since the start of this process.
type counters struct {
	accepted uint64 // accepted connections

	// Connections that were turned away. unidentified counts the connections
	// that get no answer because the kernel does not identify the client. Each
	// of the other counters stands for one status of the answer: 403, 429 (the
	// source is blocked), and 503.
	unidentified, forbidden, blocked, unavailable uint64

	replaced uint64 // workers that kept connections that were gone

	lost uint64 // workers of lazy pools that failed or did not start

	// Workers: started, exited as intended, exited unexpectedly, killed by the
	// dispatcher, killed by their sandbox.
	started, done, died, killed, violated uint64

	dial dial.Counters
}

// countTurnedAway counts a connection that was turned away with the given
// status.
func (c *counters) countTurnedAway(status int) {
	switch status {
	case Forbidden:
		c.forbidden++
	case tooMany:
		c.blocked++
	case Unavailable:
		c.unavailable++
	default:
		c.unidentified++
	}
}

// turnedAway returns the number of connections that were turned away.
func (c *counters) turnedAway() uint64 {
	return c.unidentified + c.forbidden + c.blocked + c.unavailable
}

// logCounters logs the counters of connections and of workers.
func (s *Slots) logCounters() {
	a, c := s.Stats(), &s.counts
	s.log.Info("counters",
		"connections", slog.GroupValue(
			slog.Uint64("accepted", c.accepted), slog.Int("held", a.Held), slog.Int("limit", a.Slots),
			slog.Uint64("waited", a.Waited), slog.Int("waiting", a.Waiting), slog.Int("watching", a.Watching), slog.Int("sources", a.Sources)),
		"turned_away", slog.GroupValue(
			slog.Uint64("unidentified", c.unidentified), slog.Uint64("forbidden", c.forbidden),
			slog.Uint64("blocked", c.blocked), slog.Uint64("unavailable", c.unavailable)),
		"penalties", slog.GroupValue(
			slog.Uint64("auth", a.Offences[penalty.Auth]), slog.Uint64("malformed", a.Offences[penalty.Malformed]),
			slog.Uint64("crash", a.Offences[penalty.Crash]),
			slog.Uint64("blocks", a.Blocks), slog.Int("debts", a.Debts), slog.Uint64("evicted", a.Evicted)),
		"workers", slog.GroupValue(
			slog.Uint64("started", c.started), slog.Uint64("done", c.done), slog.Uint64("died", c.died),
			slog.Uint64("killed", c.killed), slog.Uint64("forbidden_call", c.violated), slog.Uint64("replaced", c.replaced)),
		"dials", slog.GroupValue(
			slog.Uint64("opened", c.dial.Dialed.Load()), slog.Uint64("failed", c.dial.Failed.Load()),
			slog.Uint64("limited", c.dial.Limited.Load()), slog.Uint64("prepared", c.dial.Prepared.Load())))
}
