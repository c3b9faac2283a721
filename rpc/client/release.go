package client

import (
	"context"
	"sync"
	"time"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

const (
	releaseWait  = 500 * time.Millisecond // from the question on; an answer that comes later is kept, too
	releaseRetry = 30 * time.Second       // after a question without an answer
	releaseKept  = 10 * time.Minute       // by then an upgrade within one protocol is noticed
)

// releases is the question for a controller's release. The answers are the daemons'.
type releases struct {
	mu      sync.Mutex    // guards all fields
	next    time.Time     // not to be asked before
	asked   time.Time     // when the last question went out
	pending chan struct{} // closed when the question that is out has ended; nil: none is out
}

// Release returns the release of the controller that answered last, as "24.11.5". A controller that is not known to
// have one is asked, and so is one that was lost meanwhile or told it ten minutes ago. Half a second after the
// question no call waits for the answer any more. A controller that does not tell is of the
// release whose protocol it speaks, as "24.11". "" means that no controller has answered yet.
func (c *Client) Release(ctx context.Context, cred model.Credential) string {
	if pending, most := c.askRelease(ctx, cred); most > 0 {
		wait := time.NewTimer(most)
		defer wait.Stop()
		select {
		case <-pending:
		case <-wait.C:
		case <-ctx.Done():
		}
	}
	if d := c.current(); d != nil {
		release, _ := d.told()
		return release
	}
	return ""
}

// askRelease asks the controller, unless its release is known. It returns what to wait for, and how long; 0 is
// not at all. The question outlives the request that caused it: cut off early, it would make
// a slow controller pass for one that hangs.
func (c *Client) askRelease(ctx context.Context, cred model.Credential) (pending <-chan struct{}, most time.Duration) {
	r := &c.releases
	r.mu.Lock()
	defer r.mu.Unlock()
	now := c.now()
	if d := c.current(); d != nil {
		if _, until := d.told(); now.Before(until) {
			return nil, 0
		}
	}
	if r.pending != nil {
		return r.pending, r.asked.Add(releaseWait).Sub(now)
	}
	if now.Before(r.next) {
		return nil, 0
	}
	done := make(chan struct{})
	r.pending, r.asked = done, now
	go func() {
		defer close(done)
		err := c.learnRelease(context.WithoutCancel(ctx), cred)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.pending = nil; err != nil {
			r.next = c.now().Add(releaseRetry)
			c.cfg.Log.Debug("controller did not tell its release", "error", err)
		}
	}()
	return done, releaseWait
}

// learnRelease asks, and remembers the answer with the controller that gave it.
func (c *Client) learnRelease(ctx context.Context, cred model.Credential) error {
	var answer message.BuildInfo
	ask := request{kind: message.RequestBuildInfo, body: &message.BuildInfoRequest{}, repeatable: true}
	if err := c.query(ctx, cred, ask, message.ResponseBuildInfo, &answer); err != nil {
		return err
	}
	c.current().tell(answer.Version, c.now().Add(releaseKept))
	return nil
}

// tell remembers what d answered, for the given time.
func (d *daemon) tell(release string, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.release, d.releaseUntil = release, until
}

// told returns the release of d, as far as it is known, and until when it need not be asked again.
func (d *daemon) told() (release string, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.release == "" && d.spoke != 0 {
		return d.spoke.Release(), d.releaseUntil
	}
	return d.release, d.releaseUntil
}
