package client

import (
	"context"
	"slices"
	"sync"

	"schedrestd/internal/errs"
)

// maxLongRequests is the maximum number of long answers that are requested from
// the controllers at the same time. A controller writes one answer after
// another, and needs a tenth of a second for each long one. A hundred
// concurrent requests would block all other clients for ten seconds, and there
// would not be enough memory for most of the answers.
const maxLongRequests = 4

// A gate limits the number of concurrent requests whose answers may be long. A
// request enters the gate before it connects, and leaves the gate when its
// answer has been read. The next request that the gate admits is one whose
// credential has the fewest admitted requests. So a client that requests a
// hundred lists delays other clients by at most one list.
type gate struct {
	mu      sync.Mutex
	byOwner map[owner]int
	active  int // admitted requests
	queue   []*gateWaiter
}

// gateWaiter is a request that waits for the gate.
type gateWaiter struct {
	owner    owner
	admitted chan struct{} // closed when the request is admitted
}

// enter waits until the gate admits a request with the owner's credential. If
// ctx ends first, enter returns errs.Unavailable. If enter returns nil, the
// caller must call leave when the request has ended.
func (g *gate) enter(ctx context.Context, owner owner) error {
	g.mu.Lock()
	w := &gateWaiter{owner: owner, admitted: make(chan struct{})}
	g.queue = append(g.queue, w)
	g.admit()
	g.mu.Unlock()
	select {
	case <-w.admitted:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queue, w)
	if i < 0 {
		return nil // the request was admitted just now
	}
	g.queue = slices.Delete(g.queue, i, i+1)
	return errs.Wrap(context.Cause(ctx), errs.Unavailable, "server busy: limit of concurrent long answers reached")
}

// leave ends an admitted request and admits the next one.
func (g *gate) leave(owner owner) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.active--
	if g.byOwner[owner]--; g.byOwner[owner] == 0 {
		delete(g.byOwner, owner)
	}
	g.admit()
}

// admit admits waiting requests up to the limit. The caller holds the lock.
func (g *gate) admit() {
	if g.byOwner == nil {
		g.byOwner = map[owner]int{}
	}
	for g.active < maxLongRequests && len(g.queue) > 0 {
		next := 0
		for i, c := range g.queue {
			if g.byOwner[c.owner] < g.byOwner[g.queue[next].owner] {
				next = i
			}
		}
		c := g.queue[next]
		g.queue = slices.Delete(g.queue, next, next+1)
		g.active++
		g.byOwner[c.owner]++
		close(c.admitted)
	}
}

// admitRequest waits until there is memory for the expected answer to r. If
// that answer may be long, admitRequest then waits until the gate admits r. In
// this order, a request that waits for memory does not occupy the gate. Waiting
// takes at most half of the remaining time, so that there is time for the
// answer. The caller must call leaveGate when it has read the answer.
func (c *Client) admitRequest(ctx context.Context, allowance *allowance, r request) (leaveGate func(), err error) {
	ctx, cancel := splitDeadline(ctx, true)
	defer cancel()
	for {
		n := c.memoryFor(r)
		if allowance.held < n {
			if err := allowance.acquire(ctx, n, false); err != nil {
				return noop, err
			}
		}
		if !r.repeatable || !c.answerSizes.expectLong(r, c.now()) {
			return noop, nil // r need not pass the gate
		}
		unreserved := allowance.held < n
		if err := c.gate.enter(ctx, allowance.owner); err != nil {
			allowance.release(allowance.held)
			return noop, err
		}
		// The wait for the gate may have been long. In the meantime, the size
		// of the answer may have become known.
		if allowance.budget.claim(allowance, c.memoryFor(r), unreserved) {
			return func() { c.gate.leave(allowance.owner) }, nil
		}
		c.gate.leave(allowance.owner)
	}
}

func noop() {}

// readmit admits r again after an answer of n bytes did not fit into memory. It
// waits for n bytes, and then for the gate.
func (c *Client) readmit(ctx context.Context, allowance *allowance, r request, n int) (leaveGate func(), err error) {
	if err := allowance.acquire(ctx, n, false); err != nil {
		return noop, err
	}
	return c.admitRequest(ctx, allowance, r)
}

// memoryFor returns how much memory must be free before r is sent.
func (c *caller) memoryFor(r request) int {
	if r.prompt {
		return 0
	}
	return min(c.answerSizes.get(r.kind), c.cfg.Answers.longest())
}
