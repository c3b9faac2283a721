package process

import (
	"fmt"
	"time"

	"schedrestd/ipc"
)

// A Liveness tracks whether a process still reads its channel. Without this
// check, a process that was stopped by a signal would keep its resources
// forever. A Liveness must not be used concurrently.
type Liveness struct {
	lastPing     uint64    // number of the last Ping
	pendingSince time.Time // when the Ping was due; zero if it was answered
	sent         bool      // whether the channel had room for the Ping
}

// Check sends a Ping to p if p has answered the previous one. If p has not
// answered within limit, Check kills p. While the channel is full, the next call
// tries again: a process that is only slow must not be killed for a Ping that it
// never got.
func (l *Liveness) Check(p *Process, limit time.Duration) {
	switch {
	case l.pendingSince.IsZero():
		l.lastPing++
		l.pendingSince, l.sent = time.Now(), false
	case time.Since(l.pendingSince) > limit:
		p.Terminate(fmt.Sprintf("has not read its channel for %s", limit))
		return
	}
	if !l.sent {
		l.sent = p.Channel.TrySend(&ipc.Ping{Number: l.lastPing}) == nil
	}
}

// PendingSince returns when the unanswered Ping was due, or the zero Time if
// there is none.
func (l *Liveness) PendingSince() time.Time { return l.pendingSince }

// HandlePong handles a Pong. It returns an error if the Pong does not answer
// the pending Ping. Otherwise a process could keep the dispatcher busy with
// Pongs.
func (l *Liveness) HandlePong(number uint64) error {
	if l.pendingSince.IsZero() || !l.sent || number != l.lastPing {
		return fmt.Errorf("sent Pong %d, which was not requested", number)
	}
	l.pendingSince = time.Time{}
	return nil
}
