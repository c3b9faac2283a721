// Package semaphore bounds how much is done concurrently, in total and for each
// user, and lets users take turns: one that asks often does not delay the others.
package semaphore

import (
	"context"
	"sync"
	"time"

	"schedrestd/errs"
)

// Semaphore has a number of places, of which one user can hold a few. mu guards
// the fields below it.
type Semaphore struct {
	total, each int
	patience    time.Duration

	mu      sync.Mutex
	taken   int
	held    map[uint32]int // by user
	waiting []*waiter      // of each user in the order in which they came
}

// waiter waits for a place. start is closed when it has one.
type waiter struct {
	uid   uint32
	start chan struct{}
}

// New returns a Semaphore of total places, of which one user can hold each. No
// caller waits longer than patience.
func New(total, each int, patience time.Duration) *Semaphore {
	return &Semaphore{total: total, each: each, patience: patience, held: map[uint32]int{}}
}

// Acquire waits for a place, which uid holds until release is called. The wait
// ends with errs.TooMany when ctx ends, as when the client closes its connection.
func (s *Semaphore) Acquire(ctx context.Context, uid uint32) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	w := &waiter{uid, make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.startNext()
	s.mu.Unlock()
	select {
	case <-w.start:
		return func() { s.release(uid) }, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.waiting {
		if other == w {
			s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
			return nil, errs.New(errs.TooMany, "too many queries at a time")
		}
	}
	return func() { s.release(uid) }, nil // it was started at the same moment
}

// Counts returns how many places are taken, and how many callers wait for one.
func (s *Semaphore) Counts() (taken, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken, len(s.waiting)
}

func (s *Semaphore) release(uid uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.held[uid]--; s.held[uid] == 0 {
		delete(s.held, uid)
	}
	s.startNext()
}

// startNext gives free places to those that wait, first to one of the user that
// holds the fewest. The others of that user then wait behind those of all other
// users. s.mu is held.
func (s *Semaphore) startNext() {
	for s.taken < s.total {
		best := -1
		for i, w := range s.waiting {
			if s.held[w.uid] < s.each && (best < 0 || s.held[w.uid] < s.held[s.waiting[best].uid]) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		w := s.waiting[best]
		s.waiting = append(s.waiting[:best], s.waiting[best+1:]...)
		s.sendBack(w.uid)
		s.taken++
		s.held[w.uid]++
		close(w.start)
	}
}

// sendBack lets the waiters of uid wait behind all others. s.mu is held.
func (s *Semaphore) sendBack(uid uint32) {
	var others, own []*waiter
	for _, w := range s.waiting {
		if w.uid == uid {
			own = append(own, w)
		} else {
			others = append(others, w)
		}
	}
	s.waiting = append(others, own...)
}
