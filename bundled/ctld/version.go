package ctld

import (
	"time"

	"schedrestd/model"
)

// A version says how current the information in an answer is. Clients send its
// time back later, to ask whether anything has changed since.
type version struct {
	changed model.Time // when the information last changed
	time    model.Time // when the information was read; see updateTimeLocked
}

// isCurrent reports whether a client that got its information at the time last
// has version v. If the change was in the same second, it may have come later,
// so isCurrent returns false. It also returns false for a time in the future:
// the clock was set back and the controller restarted since, so the time says
// nothing.
func (v version) isCurrent(last model.Time) bool {
	return last > 0 && last-1 >= v.changed && last <= v.time
}

// updateTimeLocked returns the time to put into an answer, or to record for a
// change. If the clock was set back, this is the latest time that updateTimeLocked
// has returned. Otherwise clients that got an answer before would not learn of
// the changes that follow.
func (c *Controller) updateTimeLocked(now time.Time) model.Time {
	c.latestUpdate = max(c.latestUpdate, model.At(now))
	return c.latestUpdate
}

// startVersion returns the version of information that changes only when the
// controller starts.
func (c *Controller) startVersion() version {
	c.mu.Lock()
	defer c.mu.Unlock()
	return version{changed: model.At(c.startedAt), time: c.updateTimeLocked(time.Now())}
}
