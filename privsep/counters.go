package privsep

import (
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"schedrestd/penalty"
	"schedrestd/privsep/dial"
)

// count is a number of things that happened.
type count struct{ n atomic.Uint64 }

func (c *count) add(n int) { c.n.Add(uint64(n)) }

// LogValue is for slog.
func (c *count) LogValue() slog.Value { return slog.Uint64Value(c.n.Load()) }

// counters is what happened since the start, as far as the parent sees it.
type counters struct {
	accepted count // connections

	// Turned away, by the answer: none, since the kernel does not say who it is; 403; 429, its source has to wait; 503.
	nameless, forbidden, paused, unserved count

	born, done, died, killed, caged count // workers: that ended as they should, by themselves, by the parent, by their cage

	dial dial.Counters
}

// turnedAway counts one connection that was closed with that status.
func (c *counters) turnedAway(status int) {
	switch status {
	case statusForbidden:
		c.forbidden.add(1)
	case statusTooMany:
		c.paused.add(1)
	case statusUnavailable:
		c.unserved.add(1)
	default:
		c.nameless.add(1)
	}
}

// accounts is all that is counted: the parent's own, in one line, and what workers and the keeper say, in one of each.
type accounts struct {
	slots   *slots
	pools   *pools
	current func() *generation
}

// show has them written to the log. Requests are counted where they are read, by a worker, whose word that is.
func (a accounts) show() {
	a.slots.log.Info("counters", a.slots.counters()...)
	a.pools.each((*pool).show)
	a.current().show()
}

// counters is of connections and of those who served them.
func (s *slots) counters() []any {
	s.mu.Lock()
	a := s.state.Stats()
	s.mu.Unlock()
	c := s.counts
	return []any{
		"connections", slog.GroupValue(
			slog.Any("accepted", &c.accepted), slog.Int("held", a.Held), slog.Int("most", a.Slots),
			slog.Uint64("had_to_park", a.Parked), slog.Int("parked", a.Waiting), slog.Int("sources", a.Sources)),
		"turned_away", slog.GroupValue(
			slog.Any("nameless", &c.nameless), slog.Any("forbidden", &c.forbidden), slog.Any("paused", &c.paused), slog.Any("unavailable", &c.unserved)),
		"penalties", slog.GroupValue(
			slog.Uint64("auth", a.Offences[penalty.Auth]), slog.Uint64("malformed", a.Offences[penalty.Malformed]), slog.Uint64("crash", a.Offences[penalty.Crash]),
			slog.Uint64("pauses", a.Blocked), slog.Int("debts", a.Debts), slog.Uint64("forgotten", a.Forgotten)),
		"workers", slog.GroupValue(
			slog.Any("born", &c.born), slog.Any("done", &c.done), slog.Any("died", &c.died), slog.Any("killed", &c.killed), slog.Any("caged", &c.caged)),
		"errands", slog.GroupValue(
			slog.Uint64("dialled", c.dial.Dialled.Load()), slog.Uint64("undialled", c.dial.Undialled.Load()),
			slog.Uint64("limited", c.dial.Limited.Load()), slog.Uint64("spares", c.dial.Spares.Load())),
	}
}

// show asks the workers that serve to write theirs to the log.
func (p *pool) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		if w.ready {
			w.Signal(syscall.SIGUSR1)
		}
	}
}

// onRequest calls show whenever SIGUSR1 comes, until the function that it returns is called.
func onRequest(show func()) (stop func()) {
	asked, quit := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(asked, syscall.SIGUSR1)
	go func() {
		for {
			select {
			case <-asked:
				show()
			case <-quit:
				return
			}
		}
	}()
	return func() {
		signal.Stop(asked)
		signal.Ignore(syscall.SIGUSR1) // one that comes late must not end what is draining
		close(quit)
	}
}
