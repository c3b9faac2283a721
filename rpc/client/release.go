package client

import (
	"context"
	"sync"
	"time"

	"schedrestd/internal/origin"
	"schedrestd/model"
	"schedrestd/rpc/message"
)

const (
	releaseWait  = 500 * time.Millisecond // maximum wait for the answer; a later answer is also stored
	releaseRetry = 30 * time.Second       // pause after a request without an answer
	releaseTTL   = 10 * time.Minute       // time after which the release is requested again, because an upgrade need not change the protocol
)

// releases holds the state of the requests for a controller's release. The
// release itself is stored in the daemon value of that controller.
type releases struct {
	mu          sync.Mutex    // guards the fields below; locked before those of daemons and of a daemon
	notBefore   time.Time     // time before which no request is made
	requestedAt time.Time     // when the last request was sent
	pending     chan struct{} // closed when the pending request ends; nil if there is none
}

// Release returns the release of the controller that answered last, such as
// "24.11.5". It requests the release if the controller's last report is more
// than ten minutes old, or if the controller could not be reached since that
// report. It waits for the answer for at most half a second.
//
// If the controller has not reported its release, Release returns the first
// release with the controller's protocol version, such as "24.11". If no
// controller has answered yet, it returns "".
func (c *Client) Release(ctx context.Context, cred model.Credential) string {
	if pending, maxWait := c.requestRelease(ctx, cred); maxWait > 0 {
		timer := time.NewTimer(maxWait)
		defer timer.Stop()
		select {
		case <-pending:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	if d := c.current(); d != nil {
		release, _ := d.cachedRelease()
		return release
	}
	return ""
}

// requestRelease requests the controller's release, unless the release is
// known, a request is already pending, or the last request failed recently. It
// returns a channel to wait for, and the maximum time to wait. If that time is
// not positive, the caller must not wait.
//
// When the caller's context ends, the request continues: if it were aborted, a
// slow controller would be treated as hanging.
func (c *Client) requestRelease(ctx context.Context, cred model.Credential) (pending <-chan struct{}, maxWait time.Duration) {
	r := &c.releases
	r.mu.Lock()
	defer r.mu.Unlock()
	now := c.now()
	if d := c.current(); d != nil {
		if _, until := d.cachedRelease(); now.Before(until) {
			return nil, 0
		}
	}
	if r.pending != nil {
		return r.pending, r.requestedAt.Add(releaseWait).Sub(now)
	}
	if now.Before(r.notBefore) {
		return nil, 0
	}
	done := make(chan struct{})
	r.pending, r.requestedAt = done, now
	go func() {
		defer close(done)
		// Without the origin: the data of the caller's answer does not include the release.
		err := c.fetchRelease(origin.With(context.WithoutCancel(ctx), nil), cred)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.pending = nil; err != nil {
			r.notBefore = c.now().Add(releaseRetry)
			c.cfg.Log.Debug("release request failed", "error", err)
		}
	}()
	return done, releaseWait
}

// fetchRelease requests the release and stores the answer in the daemon that
// sent it.
func (c *Client) fetchRelease(ctx context.Context, cred model.Credential) error {
	var answer message.BuildInfo
	r := request{kind: message.RequestBuildInfo, body: &message.BuildInfoRequest{}, repeatable: true}
	if err := c.query(ctx, cred, r, message.ResponseBuildInfo, &answer); err != nil {
		return err
	}
	c.current().setRelease(answer.Version, c.now().Add(releaseTTL))
	return nil
}

// setRelease stores d's release, and the time until which the release is valid.
func (d *daemon) setRelease(release string, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.release, d.releaseUntil = release, until
}

// cachedRelease returns the release of d, and the time until which it need not
// be requested again. If d has not reported its release, cachedRelease returns
// the first release with d's protocol version. If d has never answered, it
// returns "".
func (d *daemon) cachedRelease() (release string, until time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.release == "" && d.lastVersion != 0 {
		return d.lastVersion.Release(), d.releaseUntil
	}
	return d.release, d.releaseUntil
}
