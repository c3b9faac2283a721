package client

import "time"

// Limits of idle sessions, for tests.
const (
	MaxIdle    = maxIdle
	MaxIdleOne = maxIdleOne
)

// Clock replaces c's clock.
func (c *Client) Clock(now func() time.Time) { c.now = now }

// Free returns the number of unused bytes of b.
func (b *Budget) Free() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size - b.here.taken
}

// Waiting returns the number of requests that wait for b.
func (b *Budget) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// Limits of failed probes, for tests.
const (
	MaxVain = maxVain
	VainFor = vainFor
)

// RetryPrimary is the time for which a backup is preferred.
const RetryPrimary = retryPrimary

// RestFor sets the time after which an idle session gets only a part of a
// call's time.
func (a *Accounting) RestFor(d time.Duration) { a.sessions.rest = d }

// WaitFor sets the time after which an idle session is closed.
func (a *Accounting) WaitFor(d time.Duration) { a.sessions.wait = d }

// Times of requests for a controller's release; see release.go.
const (
	ReleaseWait  = releaseWait
	ReleaseRetry = releaseRetry
	ReleaseKept  = releaseKept
)

// MostAsked is the maximum number of long answers that are requested
// concurrently.
const MostAsked = mostAsked
