package client

import "time"

// Bounds of waiting sessions, for tests.
const (
	MaxIdle    = maxIdle
	MaxIdleOne = maxIdleOne
)

// Clock is what c looks at instead of the time of day.
func (c *Client) Clock(now func() time.Time) { c.now = now }

// Free returns the unused bytes of b.
func (b *Budget) Free() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size - b.here.taken
}

// Waiting is how many wait for some of b.
func (b *Budget) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue)
}

// Bounds of failed probes, for tests.
const (
	MaxVain = maxVain
	VainFor = vainFor
)

// RetryPrimary is for how long a backup is remembered.
const RetryPrimary = retryPrimary

// RestFor sets from when on a session that waits is trusted with a part of the time.
func (a *Accounting) RestFor(d time.Duration) { a.sessions.rest = d }

// WaitFor sets how long a session waits.
func (a *Accounting) WaitFor(d time.Duration) { a.sessions.wait = d }

// How long a release is kept, and a controller without one left alone.
const (
	ReleaseWait  = releaseWait
	ReleaseRetry = releaseRetry
	ReleaseKept  = releaseKept
)

// MostAsked is how many long answers are asked for at a time.
const MostAsked = mostAsked
