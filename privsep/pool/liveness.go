package pool

import (
	"fmt"
	"time"

	"schedrestd/ipc"
	"schedrestd/privsep/admission"
	"schedrestd/privsep/spawn"
)

// Liveness is how long a process has not answered.
type Liveness struct {
	asked uint64    // number of the last Ping
	since time.Time // when it was sent; zero when it was answered
}

// Ask sends p a Ping when the last one was answered, or ends it when that is due for longer than limit.
// The worker's own uid may stop it (SIGSTOP): it would keep its connections, and be given more, while
// no client gets an answer; and while the pool drains it would hold up the end.
func (s *Liveness) Ask(p *spawn.Process, limit time.Duration) {
	switch {
	case s.since.IsZero():
		s.asked++
		s.since = time.Now()
		// A full channel is the same silence: the next ticks judge it.
		_ = p.Channel.TrySend(&ipc.Ping{Number: s.asked})
	case time.Since(s.since) > limit:
		p.Condemn(fmt.Sprintf("it has not read its channel for %s", limit))
	}
}

// Answered takes the answer to the Ping that waits, and no other: otherwise a process could
// keep the parent busy with answers that nobody asked for.
func (s *Liveness) Answered(number uint64) error {
	if s.since.IsZero() || number != s.asked {
		return fmt.Errorf("it said Pong %d, which nobody asked for", number)
	}
	s.since = time.Time{}
	return nil
}

// checkLiveness asks each worker whether it still reads, and ends those that don't or are there too long.
func (p *Pool) checkLiveness() {
	for _, w := range p.workers {
		if w.ready {
			w.liveness.Ask(w.Process, p.Silence)
		}
	}
	p.EndIdle(p.Silence)
	p.endOld()
}

// overdue is how long a worker may owe an answer before its slots go to others.
const overdue = time.Second

// excuseSilent gives the slots of workers that have not answered for a while to other
// connections that wait. With become_user users can stop their own workers, which keep
// what they hold until they are ended for that.
func (p *Pool) excuseSilent() {
	var list []*admission.Conn
	answering := false
	for _, w := range p.workers {
		since := w.Started
		if w.ready {
			w.liveness.Ask(w.Process, p.Silence)
			since = w.liveness.since
		}
		if since.IsZero() || time.Since(since) < overdue {
			answering = true
			continue
		}
		for _, c := range w.held {
			list = append(list, &c.Conn)
		}
	}
	if len(p.workers) > 0 && !answering {
		for _, c := range p.waiting {
			list = append(list, &c.Conn)
		}
	}
	p.Slots.Silent(list)
}
