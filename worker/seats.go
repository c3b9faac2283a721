package worker

import (
	"context"
	"slices"
	"sync"
	"time"
)

// seats is the room for requests that are being answered. Whose a request is turns out when it has a seat; then nobody
// keeps more than half of them while others wait: who has that many gives the seat back, and waits
// for his turn beside those who are not known yet.
type seats struct {
	size     int // 0: without end, and then all others are not used
	patience time.Duration

	mu       sync.Mutex
	taken    int
	inside   map[string]int       // by identity, of those that are known
	nameless []*waiter            // in the order in which they came
	parked   map[string][]*waiter // the same, of each identity that had half
}

// waiter is a request that has no seat.
type waiter struct{ seated chan struct{} }

func newSeats(size int, patience time.Duration) *seats {
	return &seats{size: size, patience: patience, inside: map[string]int{}, parked: map[string][]*waiter{}}
}

// half is how many one identity has while others wait.
func (s *seats) half() int { return max(1, s.size/2) }

// enter waits for a seat, and not without end; crowded is called when it takes a while.
func (s *seats) enter(ctx context.Context, crowded func()) bool {
	if s.size == 0 {
		return true
	}
	s.mu.Lock()
	if s.taken < s.size && len(s.nameless) == 0 {
		s.taken++
		s.mu.Unlock()
		return true
	}
	w := &waiter{make(chan struct{})}
	s.nameless = append(s.nameless, w)
	s.mu.Unlock()
	soon := time.AfterFunc(crowding, crowded)
	defer soon.Stop()
	return s.await(ctx, w, func() { s.nameless = without(s.nameless, w) })
}

// claim says whose the request is that has a seat. false: he has enough of them, nobody got up in time, and the
// request has none any more.
func (s *seats) claim(ctx context.Context, who string, crowded func()) bool {
	if s.size == 0 {
		return true
	}
	s.mu.Lock()
	if s.inside[who] < s.half() || !s.othersWait(who) {
		s.inside[who]++
		s.mu.Unlock()
		return true
	}
	w := &waiter{make(chan struct{})}
	s.parked[who] = append(s.parked[who], w)
	s.taken--
	s.next()
	s.mu.Unlock()
	soon := time.AfterFunc(crowding, crowded)
	defer soon.Stop()
	return s.await(ctx, w, func() { s.unpark(who, w) })
}

// crowds tells whether who has more seats than while others wait.
func (s *seats) crowds(who string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inside[who] > s.half()
}

// leave gives a seat back; who is "" when it did not turn out.
func (s *seats) leave(who string) {
	if s.size == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if who != "" {
		if s.inside[who]--; s.inside[who] == 0 {
			delete(s.inside, who)
		}
	}
	s.taken--
	s.next()
}

// othersWait tells whether somebody waits who is not who, or may not be; s.mu is held.
func (s *seats) othersWait(who string) bool {
	_, himself := s.parked[who]
	return len(s.nameless) > 0 || len(s.parked) > 1 || len(s.parked) == 1 && !himself
}

// await waits for w's seat. forget is called with s.mu held when it gets none.
func (s *seats) await(ctx context.Context, w *waiter, forget func()) bool {
	late := time.NewTimer(s.patience)
	defer late.Stop()
	select {
	case <-w.seated:
		return true
	case <-late.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-w.seated: // this very moment
		return true
	default:
		forget()
		return false
	}
}

// next gives out what seats there are; s.mu is held. First come identities that have less than half, then who is not
// known yet, then whoever waits.
func (s *seats) next() {
	for s.taken < s.size {
		who, waits := s.least()
		switch {
		case waits && (s.inside[who] < s.half() || len(s.nameless) == 0):
			w := s.parked[who][0]
			s.unpark(who, w)
			s.inside[who]++
			close(w.seated)
		case len(s.nameless) > 0:
			close(s.nameless[0].seated)
			s.nameless = without(s.nameless, s.nameless[0])
		default:
			return
		}
		s.taken++
	}
}

// least is the identity with the fewest seats of those that wait for more.
func (s *seats) least() (who string, waits bool) {
	for one := range s.parked {
		if !waits || s.inside[one] < s.inside[who] {
			who, waits = one, true
		}
	}
	return who, waits
}

func (s *seats) unpark(who string, w *waiter) {
	if s.parked[who] = without(s.parked[who], w); len(s.parked[who]) == 0 {
		delete(s.parked, who)
	}
}

func without(list []*waiter, w *waiter) []*waiter {
	return slices.DeleteFunc(list, func(one *waiter) bool { return one == w })
}
