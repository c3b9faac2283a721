package worker

import (
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// counters is what happened to requests since this worker began. The parent reads no request, and has each worker say so
// itself when an administrator asks.
type counters struct {
	requests               atomic.Uint64 // that could be read
	unauthenticated        atomic.Uint64 // … and were answered 401
	paused, limited, share atomic.Uint64 // … 429: has to wait for offences, asks too often, too many at one time
	crowded                atomic.Uint64 // … 503: there was no seat

	unread, handshakes, frames atomic.Uint64 // what could not be read, of HTTP/1, TLS, HTTP/2
	stalled                    atomic.Uint64 // streams that were reset since their client took nothing of the answer
	told, untold               atomic.Uint64 // offences that the parent was told of; that it was not, since there were too many
	changes, unrecorded        atomic.Uint64 // that were to be recorded; that were not made since they could not be
}

// show writes them to the log.
func (s *server) show() {
	c, o := s.counts, s.offences
	forwarded, forgotten := o.forwarded.Len()
	slog.Info("counters",
		slog.Group("requests", "read", c.requests.Load(), "unauthenticated", c.unauthenticated.Load(), "paused", c.paused.Load(),
			"rate", c.limited.Load(), "share", c.share.Load(), "no_seat", c.crowded.Load()),
		slog.Group("malformed", "requests", c.unread.Load(), "handshakes", c.handshakes.Load(), "frames", c.frames.Load(),
			"stalled", c.stalled.Load()),
		slog.Group("offences", "told", c.told.Load(), "untold", c.untold.Load(), "forwarded_sources", forwarded, "forwarded_forgotten", forgotten),
		slog.Group("rates", "identities", s.gate.rates.len()),
		slog.Group("audit", "changes", c.changes.Load(), "unrecorded", c.unrecorded.Load()))
}

// showPause is how long the next show is not before: under become_user a user may signal his own worker as often as he likes.
const showPause = time.Second

// onRequest gets a signal when the counters are to be shown. It is called before the cage is closed, which has no room for it.
func onRequest() <-chan os.Signal {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	return asked
}

// showAt shows them each time.
func (s *server) showAt(asked <-chan os.Signal) {
	for range asked {
		s.show()
		time.Sleep(showPause)
	}
}
