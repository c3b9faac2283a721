package client

import (
	"context"
	"sync"
	"time"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// An allowance is the part of a Budget that one answer has.
type allowance struct {
	budget *Budget
	who    owner // the credential, without a daemon
	has    int
	come   bool // the answer has come; otherwise it is expected
}

func (c *caller) allowance(cred model.Credential) *allowance {
	return &allowance{budget: c.cfg.Answers, who: ownerOf(nil, cred)}
}

// set gives the allowance n bytes for an answer that has come, without waiting, and
// reports whether it did.
func (r *allowance) set(n int) bool { return r.budget.try(r, n) }

// wait frees the memory of the allowance and waits for n bytes. Requests that kept
// some memory while they wait for more would wait for each other.
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

// expect waits for the memory that the last answer to t took.
func (c *caller) expect(ctx context.Context, allowance *allowance, t message.Type) error {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	return allowance.wait(ctx, c.usual.get(t), false)
}

// sizes records the size of the last answer to each kind of request. A request
// waits for that much memory before it is sent, so that no daemon waits with
// its answer.
type sizes struct {
	mu   sync.Mutex
	of   map[message.Type]int
	long map[message.Type]time.Time // when an answer was last long
}

// longFor is how long a list counts as long after a long answer. A short answer
// in between means little: nothing had changed, or the user sees only their own
// jobs.
const longFor = 10 * time.Minute

// expectLong reports whether the answer to r is likely to be long. So is a list
// that was never requested before.
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

func (s *sizes) note(t message.Type, a *reply, now time.Time) {
	n := a.later
	long := n > mostShort
	if a.flowing {
		n = 0 // it takes none
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
