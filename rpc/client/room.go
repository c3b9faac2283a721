package client

import (
	"context"
	"sync"
	"time"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// room is what one answer has of a Budget.
type room struct {
	budget *Budget
	who    owner // of no daemon: asks
	has    int
	come   bool // the answer has; else it is what is expected
}

func (c *caller) room(cred model.Credential) *room {
	return &room{budget: c.cfg.Answers, who: ownerOf(nil, cred)}
}

// set makes the room n bytes for an answer that has come, at once or not at all.
func (r *room) set(n int) bool { return r.budget.try(r, n) }

// wait gives up what it has, for n bytes when their turn comes: whoever waited for more with some in his
// hand would wait for others who do the same.
func (r *room) wait(ctx context.Context, n int, come bool) error {
	r.less(r.has)
	if n = min(n, r.budget.longest()); n == 0 {
		return nil
	}
	return r.budget.take(ctx, r, n, come)
}

// less gives n bytes back.
func (r *room) less(n int) {
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

// expect makes room for what the last answer to t took.
func (c *caller) expect(ctx context.Context, room *room, t message.Type) error {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	return room.wait(ctx, c.usual.get(t), false)
}

// sizes is how much the last answer to each kind of request counted: so much room is waited for
// before it is asked for again, while no daemon waits with the answer.
type sizes struct {
	mu   sync.Mutex
	of   map[message.Type]int
	long map[message.Type]time.Time // when one was a long one last
}

// longFor is for how long a list counts as a long one after it was: a short one in between says little, as it may be
// that nothing had changed, or what somebody is shown who sees his own jobs alone.
const longFor = 10 * time.Minute

// expectLong tells whether the answer to r is likely to be a long one. Of all there is of a kind that was never asked
// for nobody knows.
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
