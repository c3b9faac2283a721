package client

import (
	"context"
	"slices"
	"sync"

	"schedrestd/errs"
)

// mostAsked is the maximum number of long answers that are requested from the
// controllers at a time. A controller writes one answer after the other, and
// takes a tenth of a second for each. So a hundred requests at a time would
// block all other clients for ten seconds, and there would be no memory for
// most of the answers.
const mostAsked = 4

// gate limits the number of concurrent requests whose answer may be long. A
// request counts from the time before it connects until its answer has been
// read. A request that waits for the gate has no connection. When there is
// room, the gate admits a request of the credential that has the fewest
// admitted requests. So a client that requests a hundred lists delays others by
// at most one list.
type gate struct {
	mu     sync.Mutex
	inside map[owner]int
	open   int // number of admitted requests
	queue  []*comer
}

// comer is a request that waits for the gate.
type comer struct {
	who owner
	in  chan struct{} // closed when the request is admitted
}

// enter waits until the gate admits a request of the given credential. If ctx
// ends first, it returns errs.Unavailable. After an admitted request has ended,
// the caller must call leave.
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
		return nil // the request was admitted just now
	}
	g.queue = slices.Delete(g.queue, i, i+1)
	return errs.Wrap(context.Cause(ctx), errs.Unavailable, "the controller is being asked for as many long answers as may be at a time")
}

// leave ends a request and admits the next one.
func (g *gate) leave(who owner) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if g.inside[who]--; g.inside[who] == 0 {
		delete(g.inside, who)
	}
	g.admit()
}

// admit admits waiting requests up to the limit. The caller holds the lock.
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

// turn waits until there is memory for the expected answer to r. If the answer
// may be long, it also waits until the gate admits r. A request that waits for
// memory does not occupy the gate. turn waits for at most half of the time that
// is left, so that the request can still be answered. The caller must call
// leave when it has read the answer.
func (c *Client) turn(ctx context.Context, allowance *allowance, r request) (leave func(), err error) {
	ctx, cancel := share(ctx, true)
	defer cancel()
	for {
		n := c.wants(r)
		if allowance.has < n {
			if err := allowance.wait(ctx, n, false); err != nil {
				return nothing, err
			}
		}
		if !r.repeatable || !c.usual.expectLong(r, c.now()) {
			return nothing, nil // r need not pass the gate
		}
		content := allowance.has < n
		if err := c.gate.enter(ctx, allowance.who); err != nil {
			allowance.less(allowance.has)
			return nothing, err
		}
		// The wait for the gate may have been long, and meanwhile the size of
		// the answer may have become known.
		if allowance.budget.claim(allowance, c.wants(r), content) {
			return func() { c.gate.leave(allowance.who) }, nil
		}
		c.gate.leave(allowance.who)
	}
}

func nothing() {}

// again repeats the turn of r when there was no memory for the answer, which has
// n bytes. It waits for that memory and for another turn of r.
func (c *Client) again(ctx context.Context, allowance *allowance, r request, n int) (leave func(), err error) {
	if err := allowance.wait(ctx, n, false); err != nil {
		return nothing, err
	}
	return c.turn(ctx, allowance, r)
}

// wants returns how much memory must be free before r is sent.
func (c *caller) wants(r request) int {
	if r.prompt {
		return 0
	}
	return min(c.usual.get(r.kind), c.cfg.Answers.longest())
}
