package client

import (
	"context"
	"sync"
	"time"
)

// UnreachableAfter is how long no controller may have accepted a connection before
// Reachable reports it.
const UnreachableAfter = 10 * time.Second

const (
	reachFresh = UnreachableAfter / 2 // how long an accepted connection is proof enough
	reachEvery = time.Second          // between attempts
	reachLimit = 2 * time.Second      // for one attempt
)

// reached remembers when a controller last accepted a connection.
type reached struct {
	mu      sync.Mutex
	last    time.Time
	tried   time.Time     // when the last attempt began
	running chan struct{} // closed when the attempt that is under way ends; nil: there is none
}

// accepted notes that a controller accepted a connection.
func (r *reached) accepted(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = now
}

// Reachable reports whether a controller has accepted a connection within
// UnreachableAfter, of any request or, when that is a while ago, of an attempt that it
// makes. An attempt sends nothing, and all callers share it: anyone may ask, and
// the controllers see at most one a second. A new Client counts as reached.
func (c *Client) Reachable(ctx context.Context) bool {
	r := &c.reached
	r.mu.Lock()
	now := c.now()
	if now.Sub(r.last) >= reachFresh && r.running == nil && now.Sub(r.tried) >= reachEvery {
		r.tried, r.running = now, make(chan struct{})
		go c.tryAll(r.running)
	}
	running := r.running
	r.mu.Unlock()
	if running != nil {
		select {
		case <-running:
		case <-ctx.Done():
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.now().Sub(r.last) < UnreachableAfter
}

// tryAll connects to every controller at once, and ends when one accepts or none does.
func (c *Client) tryAll(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), min(reachLimit, c.cfg.ConnectTimeout))
	defer cancel()
	var wait sync.WaitGroup
	for _, d := range c.list {
		wait.Go(func() {
			for _, a := range d.addresses {
				if nc, err := c.dial(ctx, a); err == nil {
					nc.Close()
					cancel()
					return
				}
			}
		})
	}
	wait.Wait()
	c.reached.mu.Lock()
	c.reached.running = nil
	c.reached.mu.Unlock()
	close(done)
}
