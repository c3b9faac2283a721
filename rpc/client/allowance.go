package client

import (
	"context"
	"sync"
	"time"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// An allowance is the part of a Budget that one answer uses.
type allowance struct {
	budget  *Budget
	owner   owner // the credential; its daemon is not set
	held    int   // bytes
	arrived bool  // false if the answer is only expected
}

func (c *caller) allowance(cred model.Credential) *allowance {
	return &allowance{budget: c.cfg.Answers, owner: ownerOf(nil, cred)}
}

// tryAcquire reserves n bytes in total for an answer that has arrived. It does
// not wait, and reports whether it succeeded.
func (r *allowance) tryAcquire(n int) bool { return r.budget.tryAcquire(r, n) }

// acquire first frees the memory of the allowance, and then waits until it can
// reserve n bytes. If waiting requests kept their memory, two of them could
// wait for each other forever.
func (r *allowance) acquire(ctx context.Context, n int, arrived bool) error {
	r.release(r.held)
	if n = min(n, r.budget.longest()); n == 0 {
		return nil
	}
	return r.budget.acquire(ctx, r, n, arrived)
}

// release frees n bytes.
func (r *allowance) release(n int) {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if n = min(n, r.held); n > 0 {
		b.resize(r, r.held-n, r.arrived)
		b.admitWaiting()
	}
	if r.held == 0 {
		r.arrived = false
	}
}

// waitForMemory waits for memory for the answer to a request of type t. It
// expects the answer to be as long as the last one.
func (c *caller) waitForMemory(ctx context.Context, allowance *allowance, t message.Type) error {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	return allowance.acquire(ctx, c.answerSizes.get(t), false)
}

// A sizes value records the size of the last answer to each type of request.
// Each request waits for that much memory before it is sent, and not while the
// daemon sends the answer.
type sizes struct {
	mu       sync.Mutex
	last     map[message.Type]int
	lastLong map[message.Type]time.Time // times of the last long answers
}

// longAnswerTTL is the time for which a long answer makes expectLong expect
// more long answers to requests of the same type. Short answers do not shorten
// this time, because they may have special reasons: perhaps the list has not
// changed, or the user may see only their own jobs.
const longAnswerTTL = 10 * time.Minute

// expectLong reports whether the answer to r is likely to be long. If r
// requests a list for the first time, it returns true.
func (s *sizes) expectLong(r request, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, requested := s.last[r.kind]
	last, wasLong := s.lastLong[r.kind]
	return n > maxShort || r.list && (!requested || wasLong && now.Sub(last) < longAnswerTTL)
}

func (s *sizes) get(t message.Type) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[t]
}

func (c *caller) recordSize(t message.Type, a *reply) {
	c.answerSizes.record(t, a.remaining, c.cfg.Answers.longest(), c.now())
}

// record records that the answer to a request of type t has n bytes after its
// first piece. If n exceeds limit, it records 0, because such an answer is not
// held in memory.
func (s *sizes) record(t message.Type, n, limit int, now time.Time) {
	long := n > maxShort
	if n > limit {
		n = 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last, s.lastLong = map[message.Type]int{}, map[message.Type]time.Time{}
	}
	s.last[t] = n
	if long {
		s.lastLong[t] = now
	}
}
