// Package semaphore limits concurrent work, in total and for each key, such as
// a user. Keys take turns, so that a key with many requests does not delay the
// others.
package semaphore

import (
	"context"
	"slices"
	"sync"
	"time"

	"schedrestd/internal/errs"
)

// Semaphore has a number of places, each for one caller. A caller that does not
// know its key yet passes the zero key to Acquire, and sets the key later
// (Place.Claim).
type Semaphore[K comparable] struct {
	total, share int
	lend         bool // a key can hold more than its share as long as no other key waits
	maxWait      time.Duration

	slowWait time.Duration
	onSlow   func() // called when a caller has waited for slowWait; may be nil

	mu      sync.Mutex // guards the fields below, and the fields of each Place
	inUse   int
	heldBy  map[K]int   // number of held places, by key
	waiters []*Place[K] // places with the same key are in the order in which they were requested
}

// New returns a Semaphore. The argument total is the number of its places, and
// share is the number of places that one key can hold. No caller waits longer
// than maxWait.
func New[K comparable](total, share int, maxWait time.Duration) *Semaphore[K] {
	return &Semaphore[K]{total: total, share: share, maxWait: maxWait, heldBy: map[K]int{}}
}

// NewLending works like New, but the Semaphore lends places. As long as all
// waiting callers have the same key, that key can hold more than its share,
// even every place. While a caller with another key, or without a key, waits,
// the key gets no place beyond its share.
func NewLending[K comparable](total, share int, maxWait time.Duration) *Semaphore[K] {
	s := New[K](total, share, maxWait)
	s.lend = true
	return s
}

// OnSlow makes the Semaphore call f when a caller has waited for the time d. It
// must be called before Acquire.
func (s *Semaphore[K]) OnSlow(d time.Duration, f func()) { s.slowWait, s.onSlow = d, f }

// Place is a place of a Semaphore that a caller holds or waits for.
type Place[K comparable] struct {
	sem   *Semaphore[K]
	key   K
	held  bool
	ready chan struct{} // closed when the place is held; nil before the wait
}

// Acquire waits for a place. The caller must call Release when it no longer
// needs the place. Acquire returns errs.TooMany if no place becomes free within
// the time limit of the Semaphore, or if ctx ends first, for example because
// the client closes its connection.
func (s *Semaphore[K]) Acquire(ctx context.Context, key K) (*Place[K], error) {
	p := &Place[K]{sem: s, key: key}
	s.mu.Lock()
	return p, p.wait(ctx)
}

// Claim sets the key of a place that was acquired with the zero key. If the key
// already holds its share, Claim releases the place and waits for another one.
// If the Semaphore lends places, Claim releases the place only if a caller with
// another key, or without a key, is waiting. If Claim returns an error, the
// caller no longer has a place.
func (p *Place[K]) Claim(ctx context.Context, key K) error {
	var unknown K
	s := p.sem
	s.mu.Lock()
	if !p.held || p.key != unknown {
		s.mu.Unlock()
		return nil
	}
	s.count(p.key, -1)
	p.key = key
	if s.heldBy[key] < s.share || s.lend && !slices.ContainsFunc(s.waiters, func(w *Place[K]) bool { return w.key != key }) {
		s.count(key, 1)
		s.mu.Unlock()
		return nil
	}
	p.held = false
	s.inUse--
	return p.wait(ctx)
}

// wait waits until the caller holds the place p. It must be called with s.mu
// locked, and unlocks s.mu.
func (p *Place[K]) wait(ctx context.Context) error {
	s := p.sem
	p.ready = make(chan struct{})
	s.waiters = append(s.waiters, p)
	s.startNext()
	held := p.held
	s.mu.Unlock()
	if held {
		return nil
	}
	timer := time.NewTimer(s.maxWait)
	defer timer.Stop()
	if s.onSlow != nil {
		slow := time.AfterFunc(s.slowWait, s.onSlow)
		defer slow.Stop()
	}
	select {
	case <-p.ready:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.held { // p got the place just before s.mu was locked
		return nil
	}
	s.waiters = slices.DeleteFunc(s.waiters, func(w *Place[K]) bool { return w == p })
	return errs.New(errs.TooMany, "too many concurrent queries")
}

// Release releases the place. Only the first call has an effect.
func (p *Place[K]) Release() {
	p.sem.mu.Lock()
	defer p.sem.mu.Unlock()
	if !p.held {
		return
	}
	p.held = false
	p.sem.inUse--
	p.sem.count(p.key, -1)
	p.sem.startNext()
}

// IsOverShare reports whether the place's key holds more than its share.
func (p *Place[K]) IsOverShare() bool {
	var unknown K
	p.sem.mu.Lock()
	defer p.sem.mu.Unlock()
	return p.key != unknown && p.sem.heldBy[p.key] > p.sem.share
}

// Counts returns the number of held places, and the number of waiting callers.
func (s *Semaphore[K]) Counts() (inUse, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inUse, len(s.waiters)
}

// count adds n to the number of places that a key holds. The caller holds s.mu.
func (s *Semaphore[K]) count(key K, n int) {
	if s.heldBy[key] += n; s.heldBy[key] == 0 {
		delete(s.heldBy, key)
	}
}

// startNext assigns free places to waiting callers, in this order:
//   - Callers whose key holds less than its share. The key that holds the
//     fewest places comes first.
//   - Callers without a key, if the Semaphore lends places. If it does not lend
//     places, the zero key is treated like any other key.
//   - Callers whose key holds its share or more, if the Semaphore lends places.
//     If it does not lend places, they get no place.
//
// When a key gets a place, its other callers move behind those of all other
// keys. The caller of startNext holds s.mu.
func (s *Semaphore[K]) startNext() {
	for s.inUse < s.total {
		best, least := -1, 0
		for i, w := range s.waiters {
			if rank := s.rank(w); (s.lend || rank < 2*s.total) && (best < 0 || rank < least) {
				best, least = i, rank
			}
		}
		if best < 0 {
			return
		}
		p := s.waiters[best]
		s.waiters = slices.Delete(s.waiters, best, best+1)
		s.sendBack(p.key)
		s.inUse++
		s.count(p.key, 1)
		p.held = true
		close(p.ready)
	}
}

// rank returns a number that orders the waiting callers: the lowest comes
// first. The caller of rank holds s.mu.
func (s *Semaphore[K]) rank(w *Place[K]) int {
	var unknown K
	held := s.heldBy[w.key]
	switch {
	case w.key == unknown && s.lend:
		return s.total
	case held >= s.share:
		return 2*s.total + held
	}
	return held
}

// sendBack moves the waiting callers of a key behind all others. If places are
// lent, callers without a key keep their position. The caller of sendBack holds
// s.mu.
func (s *Semaphore[K]) sendBack(key K) {
	var unknown K
	if key == unknown && s.lend {
		return
	}
	var others, own []*Place[K]
	for _, w := range s.waiters {
		if w.key == key {
			own = append(own, w)
		} else {
			others = append(others, w)
		}
	}
	s.waiters = append(others, own...)
}
