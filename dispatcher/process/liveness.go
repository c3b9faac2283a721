package process

import (
	"fmt"
	"time"

	"schedrestd/ipc"
)

// Liveness tracks whether a process still reads its channel. Without this
// check, a process that was stopped by a signal would keep its resources
// forever. A Liveness belongs to one goroutine, or is guarded by the lock of
// its process.
type Liveness struct {
	asked uint64    // number of the last Ping
	since time.Time // when the Ping was sent; zero if it was answered
}

// Ask sends a Ping to p if p has answered the last Ping. It kills p if p has
// not answered for longer than limit.
func (l *Liveness) Ask(p *Process, limit time.Duration) {
	switch {
	case l.since.IsZero():
		l.asked++
		l.since = time.Now()
		_ = p.Channel.TrySend(&ipc.Ping{Number: l.asked}) // a full channel counts as silence, too
	case time.Since(l.since) > limit:
		p.Condemn(fmt.Sprintf("has not read its channel for %s", limit))
	}
}

// Since returns when the unanswered Ping was sent, or zero if no Ping is
// unanswered.
func (l *Liveness) Since() time.Time { return l.since }

// Answered handles a Pong. It accepts only the answer to the pending Ping.
// Otherwise a process could keep the dispatcher busy.
func (l *Liveness) Answered(number uint64) error {
	if l.since.IsZero() || number != l.asked {
		return fmt.Errorf("sent Pong %d, which was not requested", number)
	}
	l.since = time.Time{}
	return nil
}
