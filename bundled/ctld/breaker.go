package ctld

import "time"

// A breaker pauses the start of jobs after a start has failed for a reason that
// has nothing to do with the job, for example because the disk is full. Without
// it, all waiting jobs would fail one after the other. When the pause is over,
// one job is started as a test. If that fails too, the next pause is twice as
// long.
type breaker struct {
	pause  time.Duration // length of the current pause
	opened time.Time     // when starts were paused
	since  time.Time     // when the current pause began
	until  time.Time     // when it ends
	test   uint32        // the job that is being started as a test; 0: none
}

// breakers holds the open breakers. The key is the uid of the user whose jobs
// are not started, or noUser if no jobs are started. Controller.mu guards it.
type breakers map[uint32]*breaker

// permit reports whether a job may be started now. If it returns true, the
// caller must start the job and then call succeeded or failed.
func (b breakers) permit(uid, id uint32, now time.Time) bool {
	for _, key := range []uint32{noUser, uid} {
		if p := b[key]; p != nil && (p.test != 0 || now.Before(p.until)) {
			return false
		}
	}
	for _, key := range []uint32{noUser, uid} {
		if p := b[key]; p != nil {
			p.test = id
		}
	}
	return true
}

// failed pauses starts because the start of a job, which began at the time
// began, failed. The argument key says which starts are paused. Starts that
// began before the current pause do not prolong it. failed reports whether
// starts were not paused before.
func (b breakers) failed(key, id uint32, began, now time.Time, shortest, longest time.Duration) (opened bool) {
	b.endTest(id)
	p := b[key]
	if p == nil {
		p = &breaker{opened: now}
		b[key], opened = p, true
	} else if !began.After(p.since) {
		return false
	}
	p.pause = min(max(shortest, 2*p.pause), longest)
	p.since, p.until = now, now.Add(p.pause)
	return opened
}

// succeeded ends the pauses of a user's starts and of all starts, because a
// start has succeeded. Starts that began before a pause do not end it.
// succeeded returns how long starts were paused, or 0 if it ended no pause.
func (b breakers) succeeded(uid, id uint32, began, now time.Time) (paused time.Duration) {
	b.endTest(id)
	for _, key := range []uint32{noUser, uid} {
		if p := b[key]; p != nil && began.After(p.since) {
			paused = max(paused, now.Sub(p.opened))
			delete(b, key)
		}
	}
	return paused
}

// endTest records that the test with job id has ended.
func (b breakers) endTest(id uint32) {
	for _, p := range b {
		if p.test == id {
			p.test = 0
		}
	}
}

// next returns the earliest time after now at which a pause ends, or the zero
// time if there is none.
func (b breakers) next(now time.Time) (next time.Time) {
	for _, p := range b {
		if now.Before(p.until) && (next.IsZero() || p.until.Before(next)) {
			next = p.until
		}
	}
	return next
}

// forget removes the breakers of users who have not started a job for a long
// time.
func (b breakers) forget(before time.Time) {
	for key, p := range b {
		if key != noUser && p.test == 0 && p.until.Before(before) {
			delete(b, key)
		}
	}
}
