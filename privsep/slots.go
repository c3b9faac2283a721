package privsep

import (
	"log/slog"
	"sync"
	"time"
)

// slots counts the connections that are being handled. The parent accepts only with a
// slot in hand; who finds none waits in the kernel's queue and loses nothing.
type slots struct {
	taken chan struct{}
	log   *slog.Logger

	mu      sync.Mutex
	dropped uint64  // connections that were closed unserved
	lines   *budget // for saying so
}

func newSlots(n int, log *slog.Logger) *slots {
	return &slots{taken: make(chan struct{}, n), log: log, lines: newBudget(50, 5, time.Now())}
}

// take waits for a slot. It reports false when quit closes first.
func (s *slots) take(quit <-chan struct{}) bool {
	select {
	case <-quit:
		return false
	default:
	}
	select {
	case s.taken <- struct{}{}:
		return true
	case <-quit:
		return false
	}
}

// free gives n slots back. More than were taken would be a fault of the accounting.
func (s *slots) free(n int) {
	for range n {
		select {
		case <-s.taken:
		default:
			panic("privsep: a slot was freed that nobody had")
		}
	}
}

// drop closes a connection that nobody serves, frees its slot, and says so. Clients
// decide how many come, so that lines about them are limited: the count is exact.
func (s *slots) drop(c *connection, why string) {
	c.close()
	s.free(1)
	s.mu.Lock()
	s.dropped++
	total := s.dropped
	ok, _ := s.lines.spend(time.Now())
	s.mu.Unlock()
	if ok {
		s.log.Warn("connection is closed unserved", "listener", c.Listener, "peer", c.Addr, "because", why, "unserved_so_far", total)
	}
}
