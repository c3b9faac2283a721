package client

import (
	"context"
	"sync"
	"time"
)

// UnreachableAfter is the time without an accepted connection after which
// Reachable reports an outage.
const UnreachableAfter = 10 * time.Second

const (
	reachFresh = UnreachableAfter / 2 // no attempt is made if the last accepted connection is more recent than this
	reachEvery = time.Second          // interval between attempts
	reachLimit = 2 * time.Second      // time limit for one attempt
)

// reachability records connections to the controllers.
type reachability struct {
	mu           sync.Mutex // guards the fields below
	lastAccepted time.Time
	lastAttempt  time.Time     // start of the last attempt of Reachable
	running      chan struct{} // closed when the running attempt ends; nil if none runs
}

func (r *reachability) recordAccepted(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastAccepted = now
}

// Reachable reports whether a controller has accepted a connection in the last
// ten seconds (UnreachableAfter). If the last accepted connection is older than
// reachFresh, Reachable first connects to the controllers, but sends nothing.
// Concurrent callers share that attempt, and there is at most one attempt per
// second. A new Client is treated as if a connection had just been accepted.
func (c *Client) Reachable(ctx context.Context) bool {
	r := &c.reachability
	r.mu.Lock()
	now := c.now()
	if now.Sub(r.lastAccepted) >= reachFresh && r.running == nil && now.Sub(r.lastAttempt) >= reachEvery {
		r.lastAttempt, r.running = now, make(chan struct{})
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
	return c.now().Sub(r.lastAccepted) < UnreachableAfter
}

// tryAll connects to all controllers concurrently. It returns when one of them
// has accepted the connection, or when all attempts have failed.
func (c *Client) tryAll(done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), min(reachLimit, c.cfg.ConnectTimeout))
	defer cancel()
	var wg sync.WaitGroup
	for _, d := range c.list {
		wg.Go(func() {
			for _, a := range d.addresses {
				if nc, err := c.dial(ctx, a); err == nil {
					nc.Close()
					cancel()
					return
				}
			}
		})
	}
	wg.Wait()
	c.reachability.mu.Lock()
	c.reachability.running = nil
	c.reachability.mu.Unlock()
	close(done)
}
