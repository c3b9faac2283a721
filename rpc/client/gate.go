package client

import (
	"context"
	"slices"
	"sync"

	"schedrestd/errs"
	"schedrestd/rpc/message"
)

// mostAsked is how many long answers the controllers are asked for at a time. A controller writes them one after the
// other, for a tenth of a second each: asked for a hundred at once it is lost to everybody else for as long, and
// most of them come when there is no room left for them.
const mostAsked = 4

// gate lets few at a time through to the controllers: those whose answer is long, or may be, from before they connect
// until it was read. Who waits holds no connection. Whoever has the fewest inside is next, so that one who asks for a
// hundred lists keeps others waiting for no more than one.
type gate struct {
	mu     sync.Mutex
	inside map[owner]int
	open   int // how many are inside
	queue  []*comer
}

// comer is one before the gate.
type comer struct {
	who owner
	in  chan struct{} // closed when he is in
}

// enter waits for who's turn. When ctx ends before: errs.Unavailable. Who is in has to leave.
func (g *gate) enter(ctx context.Context, who owner) error {
	g.mu.Lock()
	me := &comer{who: who, in: make(chan struct{})}
	g.queue = append(g.queue, me)
	g.admit()
	g.mu.Unlock()
	select {
	case <-me.in:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queue, me)
	if i < 0 {
		return nil // it came just now
	}
	g.queue = slices.Delete(g.queue, i, i+1)
	return errs.Wrap(context.Cause(ctx), errs.Unavailable, "the controller is being asked for as many long answers as may be at a time")
}

// leave lets the next one in.
func (g *gate) leave(who owner) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if g.inside[who]--; g.inside[who] == 0 {
		delete(g.inside, who)
	}
	g.admit()
}

// admit lets in as many as may be. The caller holds the lock.
func (g *gate) admit() {
	if g.inside == nil {
		g.inside = map[owner]int{}
	}
	for g.open < mostAsked && len(g.queue) > 0 {
		next := 0
		for i, c := range g.queue {
			if g.inside[c.who] < g.inside[g.queue[next].who] {
				next = i
			}
		}
		c := g.queue[next]
		g.queue = slices.Delete(g.queue, next, next+1)
		g.open++
		g.inside[c.who]++
		close(c.in)
	}
}

// turn waits until r may be asked: until there is room for what its answer will take, and, when that is long, until it
// may pass the gate. Others are not kept from the gate by who waits for room. Waiting is not all of the time: what is
// asked in the end is to be answered. leave is for when the answer was read.
func (c *Client) turn(ctx context.Context, room *room, r request) (leave func(), err error) {
	ctx, cancel := share(ctx, true)
	defer cancel()
	for {
		n := c.wants(r.kind)
		if room.has < n {
			if err := room.wait(ctx, n, false); err != nil {
				return nothing, err
			}
		}
		if !r.repeatable || !c.usual.expectLong(r, c.now()) {
			return nothing, nil // it is behind nobody
		}
		content := room.has < n
		if err := c.gate.enter(ctx, room.who); err != nil {
			room.less(room.has)
			return nothing, err
		}
		// The wait was long, perhaps, and what was not known then is known now.
		if room.budget.claim(room, c.wants(r.kind), content) {
			return func() { c.gate.leave(room.who) }, nil
		}
		c.gate.leave(room.who)
	}
}

func nothing() {}

// again is turn for what was asked, when there was no room for its answer of n bytes.
func (c *Client) again(ctx context.Context, room *room, r request, n int) (leave func(), err error) {
	if err := room.wait(ctx, n, false); err != nil {
		return nothing, err
	}
	return c.turn(ctx, room, r)
}

// wants is the room that is waited for before t is asked.
func (c *caller) wants(t message.Type) int { return min(c.usual.get(t), c.cfg.Answers.longest()) }
