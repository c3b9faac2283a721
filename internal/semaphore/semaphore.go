// Package semaphore limits concurrent work and stored bytes, in total and for
// each key, such as a user. Keys take turns, so that a key with many requests
// does not delay the others.
//
// A Queue decides which key comes next. A Semaphore is a Queue whose callers
// wait in their goroutines, or displace each other. The numbers of both are in a
// Row; those of this program are in the table of package limit.
package semaphore

import (
	"context"
	"math"
	"sync"
	"time"

	"schedrestd/internal/errs"
)

// Semaphore has a number of places. A caller holds one of them, or several:
// a place can stand for a byte. A caller that does not know its key yet passes
// the zero key to Acquire, and sets the key later (Place.Claim).
type Semaphore[K comparable] struct {
	row      Row
	slowWait time.Duration
	onSlow   func() // called when a caller has waited for slowWait; may be nil

	mu    sync.Mutex // guards the queue, and the fields of each Place
	queue *Queue[K, *Place[K]]
}

// New returns a Semaphore with the places of a row.
func New[K comparable](row Row) *Semaphore[K] {
	q := NewQueue[K, *Place[K]](row, nil)
	return &Semaphore[K]{row: q.row, queue: q}
}

// OnSlow makes the Semaphore call f when a caller has waited for the time d. It
// must be called before Acquire.
func (s *Semaphore[K]) OnSlow(d time.Duration, f func()) { s.slowWait, s.onSlow = d, f }

// Place is what one caller holds or waits for.
type Place[K comparable] struct {
	sem    *Semaphore[K]
	key    K
	weight int           // number of held places; 0 while the caller waits
	ready  chan struct{} // closed when the place is held; nil before the wait
	stop   func()        // see Displace
	end    *time.Timer   // releases the place after Row.Hold; nil if the row has none
}

// Acquire waits for a place. The caller must call Release when it no longer
// needs the place. Acquire returns errs.TooMany if no place becomes free within
// Row.Wait, and context.Cause(ctx) if ctx ends first, for example because the
// client closes its connection.
func (s *Semaphore[K]) Acquire(ctx context.Context, key K) (*Place[K], error) {
	p := s.Empty(key)
	s.mu.Lock()
	if s.queue.Len() == 0 && s.queue.Free() > 0 && s.queue.rank(key, s.queue.Held(key), p) >= 0 {
		p.weight = 1
		s.queue.Hold(key, 1)
		s.mu.Unlock()
	} else if err := p.waitLocked(ctx); err != nil {
		return p, err
	}
	if s.row.Hold > 0 {
		s.mu.Lock()
		p.end = time.AfterFunc(s.row.Hold, p.Release)
		s.mu.Unlock()
	}
	return p, nil
}

// Force returns a Place that holds one place, even if none is free. Then as many
// places must be released before others get one. It is for callers that had a
// place before, and must go on.
func (s *Semaphore[K]) Force(key K) *Place[K] {
	p := s.Empty(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	p.weight = 1
	s.queue.Hold(key, 1)
	return p
}

// Displace takes a place of a row that Displaces, instead of Acquire. It does not
// wait. If it takes the place of another caller, it calls that caller's function
// stop; the other caller then holds nothing. Displace returns nil if it can't take
// a place.
func (s *Semaphore[K]) Displace(key K, stop func()) *Place[K] {
	p := &Place[K]{sem: s, key: key, weight: 1, stop: stop}
	s.mu.Lock()
	var other *Place[K]
	possible := true
	switch {
	case s.queue.AtShare(key):
		other, possible = s.queue.First(key)
	case s.queue.Free() <= 0:
		other, possible = s.queue.Most()
	}
	if !possible || other != nil && s.queue.Held(other.key) < s.queue.Held(key)+s.row.Lead {
		s.mu.Unlock()
		return nil
	}
	if other != nil {
		other.shrinkLocked(1)
		defer other.stop()
	}
	s.queue.Hold(key, 1)
	s.queue.Push(key, p)
	s.mu.Unlock()
	return p
}

// Keep prevents others from displacing p until Offer is called.
func (p *Place[K]) Keep() {
	p.sem.mu.Lock()
	defer p.sem.mu.Unlock()
	p.sem.queue.Remove(p.key, p)
}

// Offer permits others to displace p, after all places that were offered earlier.
func (p *Place[K]) Offer() {
	p.sem.mu.Lock()
	defer p.sem.mu.Unlock()
	if p.weight > 0 {
		p.sem.queue.Push(p.key, p)
	}
}

// Empty returns a Place that holds nothing yet. The caller calls Place.Grow.
func (s *Semaphore[K]) Empty(key K) *Place[K] { return &Place[K]{sem: s, key: key} }

// Unlimited returns a Place that grows without a limit, for work that none of the
// limits applies to.
func Unlimited[K comparable]() *Place[K] {
	var none K
	return New[K](Row{Total: math.MaxInt}).Empty(none)
}

// Grow adds n to the places that p holds, unless fewer are free or the key would
// exceed its share. If the Semaphore lends places, a Place that is the key's only
// one may exceed the share. Grow does not wait. It reports whether it succeeded.
func (p *Place[K]) Grow(n int) bool {
	ok, _ := p.GrowLeaving(0, n)
	return ok
}

// GrowLeaving works like Grow, but fails if fewer than spare places would then be
// free. If it fails, it also reports whether the share is the reason.
func (p *Place[K]) GrowLeaving(spare, n int) (ok, overShare bool) {
	s := p.sem
	s.mu.Lock()
	defer s.mu.Unlock()
	switch held := s.queue.Held(p.key); {
	case held+n > s.row.Share && !(s.row.Lends && held == p.weight):
		return false, true
	case n > s.queue.Free()-spare:
		return false, false
	}
	p.weight += n
	s.queue.Hold(p.key, n)
	return true, false
}

// Shrink releases n of the places that p holds, or all of them if p holds fewer.
func (p *Place[K]) Shrink(n int) {
	p.sem.mu.Lock()
	defer p.sem.mu.Unlock()
	p.shrinkLocked(n)
}

func (p *Place[K]) shrinkLocked(n int) {
	if n = min(n, p.weight); n <= 0 {
		return
	}
	p.weight -= n
	p.sem.queue.Hold(p.key, -n)
	if p.sem.row.Displaces {
		p.sem.queue.Remove(p.key, p)
	} else {
		p.sem.startNextLocked()
	}
	if p.weight == 0 && p.end != nil {
		p.end.Stop()
	}
}

// Release releases everything that p holds.
func (p *Place[K]) Release() { p.Shrink(math.MaxInt) }

// Size returns the number of places that p holds.
func (p *Place[K]) Size() int {
	p.sem.mu.Lock()
	defer p.sem.mu.Unlock()
	return p.weight
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
	if p.weight == 0 || p.key != unknown {
		s.mu.Unlock()
		return nil
	}
	s.queue.Hold(p.key, -1)
	p.key = key
	if !s.queue.AtShare(key) || s.row.Lends && s.queue.Waiting(key) == s.queue.Len() {
		s.queue.Hold(key, 1)
		s.mu.Unlock()
		return nil
	}
	p.weight = 0
	return p.waitLocked(ctx)
}

// waitLocked waits until the caller holds the place p. It unlocks s.mu.
func (p *Place[K]) waitLocked(ctx context.Context) error {
	s := p.sem
	p.ready = make(chan struct{})
	s.queue.Push(p.key, p)
	s.startNextLocked()
	held := p.weight > 0
	s.mu.Unlock()
	if held {
		return nil
	}
	if s.row.Counts != nil {
		s.row.Counts.Waited.Add(1)
	}
	timer := time.NewTimer(s.row.Wait)
	defer timer.Stop()
	if s.onSlow != nil {
		slow := time.AfterFunc(s.slowWait, s.onSlow)
		defer slow.Stop()
	}
	var err error
	select {
	case <-p.ready:
		return nil
	case <-timer.C:
		err = errs.New(errs.TooMany, "too many concurrent queries")
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.weight > 0 { // p got the place just before s.mu was locked
		return nil
	}
	s.queue.Remove(p.key, p)
	if s.row.Counts != nil {
		s.row.Counts.Refused.Add(1)
	}
	return err
}

// IsOverShare reports whether the place's key holds more than its share.
func (p *Place[K]) IsOverShare() bool {
	var unknown K
	p.sem.mu.Lock()
	defer p.sem.mu.Unlock()
	return p.key != unknown && p.sem.queue.Held(p.key) > p.sem.row.Share
}

// Counts returns the number of held places, and the number of waiting callers.
func (s *Semaphore[K]) Counts() (inUse, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Used(), s.queue.Len()
}

// Held returns the number of places that the key holds.
func (s *Semaphore[K]) Held(key K) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Held(key)
}

// startNextLocked gives free places to waiting callers.
func (s *Semaphore[K]) startNextLocked() {
	for p, ok := s.queue.Next(); ok; p, ok = s.queue.Next() {
		p.weight = 1
		close(p.ready)
	}
}
