package process

import (
	"fmt"
	"time"

	"schedrestd/ipc"
)

// Liveness tracks whether a process still reads its channel. Otherwise a
// process that was stopped by a signal would keep what it holds forever. It
// belongs to one goroutine, or is guarded by the lock of its process.
type Liveness struct {
	asked uint64    // number of the last Ping
	since time.Time // when it was sent; zero when it was answered
}

// Ask sends p a Ping if the last one was answered, and kills p if it has not answered for
// longer than limit.
func (l *Liveness) Ask(p *Process, limit time.Duration) {
	switch {
	case l.since.IsZero():
		l.asked++
		l.since = time.Now()
		_ = p.Channel.TrySend(&ipc.Ping{Number: l.asked}) // a full channel is silence, too
	case time.Since(l.since) > limit:
		p.Condemn(fmt.Sprintf("it has not read its channel for %s", limit))
	}
}

// Since returns when the Ping was sent that is not answered yet, or zero.
func (l *Liveness) Since() time.Time { return l.since }

// Answered handles a Pong. It accepts only the answer to the open Ping.
// Otherwise a process could keep the parent busy.
func (l *Liveness) Answered(number uint64) error {
	if l.since.IsZero() || number != l.asked {
		return fmt.Errorf("it sent Pong %d, which was not asked for", number)
	}
	l.since = time.Time{}
	return nil
}
