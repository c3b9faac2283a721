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

// reached records when a controller last accepted a connection.
type reached struct {
	mu      sync.Mutex
	last    time.Time
	tried   time.Time     // start of the last attempt
	running chan struct{} // closed when the running attempt ends; nil if none runs
}

// accepted records that a controller accepted a connection.
func (r *reached) accepted(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = now
}

// Reachable reports whether any connection to a controller has been accepted in
// the last UnreachableAfter. If the last accepted connection is older than
// reachFresh, Reachable first tries to connect, without sending anything.
// Concurrent callers share the attempt. So controllers get at most one attempt
// a second, however many requests cause calls of Reachable. A new Client counts
// its creation as an accepted connection.
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

// tryAll connects to all controllers concurrently. It ends when one of them
// accepts the connection, or when all attempts have failed.
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
