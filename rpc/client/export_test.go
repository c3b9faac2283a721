package client

import (
	"slices"
	"time"

	"schedrestd/internal/limit"
)

// Numbers of the table of limits, for tests. They are constants, so that tests can
// compare them with integers of any type.
const (
	MaxIdle         = 16
	MaxIdlePerOwner = 4
	MaxSessions     = 32
	MaxHolderCalls  = 8
	MaxLongRequests = 4
	MaxLongConns    = 12
)

func init() {
	table := []int{limit.IdleSessions.Total, limit.IdleSessions.Share, limit.AccountingCalls.Total, limit.AccountingCalls.Share, limit.LongRequests.Total, limit.LongConns.Total}
	if !slices.Equal(table, []int{MaxIdle, MaxIdlePerOwner, MaxSessions, MaxHolderCalls, MaxLongRequests, MaxLongConns}) {
		panic("the constants for tests are not those of the table of limits")
	}
}

// Clock replaces c's clock.
func (c *Client) Clock(now func() time.Time) { c.now = now }

// Free returns the number of bytes of b that are not in use.
func (b *Budget) Free() int {
	used, _ := b.bytes.Counts()
	return b.size - used
}

// Waiting returns the number of requests that wait for a place in the gate.
func (c *Client) Waiting() int {
	_, conns := c.gate.conns.Counts()
	_, requests := c.gate.requests.Counts()
	return conns + requests
}

// Streaming returns the number of places in the gate for answers that stay on
// their connections or are being read.
func (c *Client) Streaming() int {
	used, _ := c.gate.conns.Counts()
	return used
}

// Limits of failed probes, for tests.
const (
	MaxClosedProbes   = maxClosedProbes
	ClosedProbeWindow = closedProbeWindow
)

// RetryPrimary is how long a backup is preferred to the primary.
const RetryPrimary = retryPrimary

// SetStaleAfter sets the idle time after which a daemon must show that it still
// answers.
func (a *Accounting) SetStaleAfter(d time.Duration) { a.sessions.staleAfter = d }

// SetIdleTimeout sets the time after which an idle session is closed.
func (a *Accounting) SetIdleTimeout(d time.Duration) { a.sessions.idleTimeout = d }

// Times for the requests that ask for a controller's release; see release.go.
const (
	ReleaseWait  = releaseWait
	ReleaseRetry = releaseRetry
	ReleaseTTL   = releaseTTL
)

// Remembered returns the number of requests that c has a record of because they
// are under way, and the number of answers that it keeps.
func (c *Client) Remembered() (series, answers int) {
	c.rounds.mu.Lock()
	defer c.rounds.mu.Unlock()
	return len(c.rounds.series), len(c.rounds.kept.answers)
}

// Calls returns the number of calls that count, of all users.
func (a *Accounting) Calls() int {
	n, _ := a.turns.Counts()
	return n
}
