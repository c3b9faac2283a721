package client

import "time"

// Bounds of waiting sessions, for tests.
const (
	MaxIdle    = maxIdle
	MaxIdleOne = maxIdleOne
)

// WaitFor sets how long a session waits.
func (a *Accounting) WaitFor(d time.Duration) { a.sessions.wait = d }
