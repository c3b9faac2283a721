package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// UnreachableAfter is the time without an accepted connection after which
// Reachable reports an outage.
const UnreachableAfter = 10 * time.Second

const (
	reachFresh = UnreachableAfter / 2 // no attempt is made if the last accepted connection is more recent than this
	reachEvery = time.Second          // interval between attempts
	reachLimit = 2 * time.Second      // time limit for one address; an attempt takes at most twice as long, so that it can try another address
)

// reachability records connections to the controllers.
type reachability struct {
	mu           sync.Mutex    // guards the fields below
	lastAccepted time.Time     // zero if no connection was accepted yet
	lastAttempt  time.Time     // start of the last attempt of Reachable
	running      chan struct{} // closed when the running attempt ends; nil if none runs
	unresolved   bool          // the last attempt failed because no controller has a known address
}

func (r *reachability) recordAccepted(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastAccepted = now
}

// Reachable returns nil if a controller has accepted a connection in the last
// ten seconds (UnreachableAfter), and otherwise why none has. If the last accepted connection is older than
// reachFresh, Reachable first connects to the controllers, but sends nothing.
// Concurrent callers share that attempt, and there is at most one attempt per
// second.
func (c *Client) Reachable(ctx context.Context) error {
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
	switch {
	case c.now().Sub(r.lastAccepted) < UnreachableAfter:
		return nil
	case r.unresolved:
		return ErrUnresolved
	case r.lastAccepted.IsZero():
		return errNeverReached
	}
	return errUnreachable
}

var (
	errNeverReached = errors.New("unreachable since the start")
	errUnreachable  = fmt.Errorf("unreachable for %s", UnreachableAfter)
)

// tryAll connects to all controllers concurrently. It returns when one of them
// has accepted the connection, or when all attempts have failed.
func (c *Client) tryAll(done chan struct{}) {
	limit := min(reachLimit, c.cfg.ConnectTimeout)
	ctx, cancel := context.WithTimeout(context.Background(), 2*limit)
	defer cancel()
	var wg sync.WaitGroup
	var known atomic.Bool // a controller has an address
	for _, d := range c.list {
		wg.Go(func() {
			for _, a := range d.addresses {
				failures := a.each(func(a Address) error {
					ctx, done := context.WithTimeout(ctx, limit)
					defer done()
					nc, err := c.dial(ctx, a)
					if err == nil {
						nc.Close()
						cancel()
					}
					return err
				})
				if !slices.ContainsFunc(failures, func(err error) bool { return errors.Is(err, ErrUnresolved) }) {
					known.Store(true)
				}
				if failures == nil {
					return
				}
			}
		})
	}
	wg.Wait()
	c.reachability.mu.Lock()
	c.reachability.running, c.reachability.unresolved = nil, !known.Load()
	c.reachability.mu.Unlock()
	close(done)
}
