package client

import (
	"context"
	"slices"
	"sync"

	"schedrestd/errs"
	"schedrestd/rpc/message"
)

// Budget bounds the memory of answers that have come and were not handed on yet. An answer is
// read at its daemon's speed, and its records go to whoever asked at his: without a bound a few
// dozen who read slowly would have one process keep gigabytes. It is safe for concurrent use.
//
// An answer counts from the moment when its length is known, and less as its records are decoded.
// One of a single piece (wire.PieceSize) does not count.
type Budget struct {
	size int

	mu    sync.Mutex
	free  int
	queue []*turn // who waits, the first one first
}

// turn is a place in the queue.
type turn struct {
	n     int
	ready chan struct{} // closed when n bytes were taken for it
}

// defaultAnswers is the Budget of a Client that was given none.
const defaultAnswers = 256 << 20

// NewBudget makes a Budget of size bytes.
func NewBudget(size int) *Budget { return &Budget{size: size, free: size} }

// try takes n bytes if they are free and nobody waits.
func (b *Budget) try(n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > 0 && (len(b.queue) > 0 || n > b.free) {
		return false
	}
	b.free -= n
	return true
}

// take takes n bytes, at most size, when its turn has come. When ctx ends before: errs.Unavailable.
func (b *Budget) take(ctx context.Context, n int) error {
	if b.try(n) {
		return nil
	}
	t := &turn{n, make(chan struct{})}
	b.mu.Lock()
	b.queue = append(b.queue, t)
	b.serve()
	b.mu.Unlock()
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.queue, t)
	if i < 0 {
		return nil // it came just now
	}
	b.queue = slices.Delete(b.queue, i, i+1)
	b.serve() // the one behind may need less
	return errs.Wrap(context.Cause(ctx), errs.Unavailable, "too many long answers are being sent at this moment")
}

// give gives n bytes back.
func (b *Budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += n
	b.serve()
}

// serve lets those in who have room now, in order. The caller holds the lock.
func (b *Budget) serve() {
	for len(b.queue) > 0 && b.queue[0].n <= b.free {
		b.free -= b.queue[0].n
		close(b.queue[0].ready)
		b.queue = slices.Delete(b.queue, 0, 1)
	}
}

// room is what one answer has of a Budget.
type room struct {
	budget *Budget
	has    int
}

// set makes the room n bytes, at once or not at all.
func (r *room) set(n int) bool {
	if n > r.has {
		if !r.budget.try(n - r.has) {
			return false
		}
		r.has = n
		return true
	}
	r.less(r.has - n)
	return true
}

// wait gives up what it has, for n bytes when their turn comes: whoever waited for more with some in his
// hand would wait for others who do the same.
func (r *room) wait(ctx context.Context, n int) error {
	r.less(r.has)
	if n = min(n, r.budget.size); n == 0 {
		return nil
	}
	if err := r.budget.take(ctx, n); err != nil {
		return err
	}
	r.has = n
	return nil
}

// less gives n bytes back.
func (r *room) less(n int) {
	if n = min(n, r.has); n > 0 {
		r.has -= n
		r.budget.give(n)
	}
}

// wait makes room for what the last answer to t took.
func (c *caller) wait(ctx context.Context, room *room, t message.Type) error {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	return room.wait(ctx, c.usual.get(t))
}

// sizes is how much the last answer to each kind of request counted: so much room is waited for
// before it is asked for again, while no daemon waits with the answer.
type sizes struct {
	mu sync.Mutex
	of map[message.Type]int
}

func (s *sizes) get(t message.Type) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[t]
}

func (s *sizes) note(t message.Type, a *reply) {
	n := a.later
	if a.flowing {
		n = 0 // it takes none
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[message.Type]int{}
	}
	s.of[t] = n
}
