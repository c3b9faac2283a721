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
	reachFresh = UnreachableAfter / 2 // time for which an accepted connection is sufficient proof
	reachEvery = time.Second          // interval between attempts
	reachLimit = 2 * time.Second      // time limit for one attempt
)

// reachability records when a controller last accepted a connection.
type reachability struct {
	mu           sync.Mutex
	lastAccepted time.Time
	lastAttempt  time.Time     // start of the last attempt
	running      chan struct{} // closed when the running attempt ends; nil if none runs
}

// recordAccepted records that a controller accepted a connection.
func (r *reachability) recordAccepted(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastAccepted = now
}

// Reachable reports whether any connection to a controller has been accepted in
// the last UnreachableAfter. If the last accepted connection is older than
// reachFresh, Reachable first tries to connect, without sending anything.
// Concurrent callers share the attempt. So controllers get at most one attempt
// a second, however many requests cause calls of Reachable. A new Client counts
// its creation as an accepted connection.
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

// tryAll connects to all controllers concurrently. It ends when one of them
// accepts the connection, or when all attempts have failed.
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
