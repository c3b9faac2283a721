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
	budget *Budget
	who    owner // the credential; its daemon is not set
	has    int
	come   bool // whether the answer has arrived; otherwise it is expected
}

func (c *caller) allowance(cred model.Credential) *allowance {
	return &allowance{budget: c.cfg.Answers, who: ownerOf(nil, cred)}
}

// set reserves n bytes in total for an answer that has arrived. It does not
// wait, and reports whether it succeeded.
func (r *allowance) set(n int) bool { return r.budget.try(r, n) }

// wait frees the memory of the allowance and waits for n bytes. It frees the
// memory first: if requests kept memory while they waited, two of them could
// wait for each other forever.
func (r *allowance) wait(ctx context.Context, n int, come bool) error {
	r.less(r.has)
	if n = min(n, r.budget.longest()); n == 0 {
		return nil
	}
	return r.budget.take(ctx, r, n, come)
}

// less frees n bytes.
func (r *allowance) less(n int) {
	b := r.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if n = min(n, r.has); n > 0 {
		b.put(r, r.has-n, r.come)
		b.serve()
	}
	if r.has == 0 {
		r.come = false
	}
}

// expect waits until as much memory is free as the last answer to a request of
// type t needed.
func (c *caller) expect(ctx context.Context, allowance *allowance, t message.Type) error {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	return allowance.wait(ctx, c.usual.get(t), false)
}

// sizes records the size of the last answer to each kind of request. A request
// waits for that much memory before it is sent, so that the daemon's answer
// need not wait for memory.
type sizes struct {
	mu   sync.Mutex
	of   map[message.Type]int
	long map[message.Type]time.Time // time of the last long answer
}

// After a long answer to a list request, expectLong expects long answers to
// that request for the time longFor. Short answers in the meantime don't end
// this time: perhaps nothing has changed, or the user is allowed to see only
// their own jobs.
const longFor = 10 * time.Minute

// expectLong reports whether the answer to r is likely to be long. The answer
// to a list request is expected to be long if that list was never requested
// before.
func (s *sizes) expectLong(r request, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, known := s.of[r.kind]
	last, was := s.long[r.kind]
	return n > mostShort || r.list && (!known || was && now.Sub(last) < longFor)
}

func (s *sizes) get(t message.Type) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[t]
}

// noteSize records the size of an answer to a request of type t.
func (c *caller) noteSize(t message.Type, a *reply) {
	c.usual.note(t, a.later, c.cfg.Answers.longest(), c.now())
}

// note records the size of an answer to a request of type t: n bytes, not
// counting the first piece. If n exceeds most, it records 0, because such an
// answer is not held in memory.
func (s *sizes) note(t message.Type, n, most int, now time.Time) {
	long := n > mostShort
	if n > most {
		n = 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of, s.long = map[message.Type]int{}, map[message.Type]time.Time{}
	}
	s.of[t] = n
	if long {
		s.long[t] = now
	}
}
