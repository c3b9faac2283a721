package privsep

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"schedrestd/ipc"
	"schedrestd/privsep/admission"
	"schedrestd/privsep/spawn"
)

// listenForSilence asks each worker now and then whether it still reads, and ends one
// that doesn't. The worker's own uid may stop it (SIGSTOP): it would keep its
// connections, and be given more, while no client gets an answer; and while the pool
// drains it would hold up the end.
func (p *pool) listenForSilence() {
	tick := time.NewTicker(p.config.Silence / 4)
	defer tick.Stop()
	for {
		select {
		case <-p.gone:
			return
		case <-tick.C:
		}
		p.mu.Lock()
		list := slices.Collect(maps.Values(p.workers))
		p.mu.Unlock()
		for _, w := range list {
			p.ask(w)
		}
		p.endIdle(p.config.Silence)
		p.endOld()
	}
}

// silence is how long a process has not answered. It is guarded by the lock of whose process it is.
type silence struct {
	asked uint64    // number of the last Ping
	since time.Time // when it was sent; zero when it was answered
}

// ask sends p a Ping when the last one was answered, or ends it when that is due for longer than limit.
func (s *silence) ask(p *spawn.Process, limit time.Duration) {
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

// heard takes the answer to the Ping that waits, and no other: else a process could
// keep the parent busy with answers that nobody asked for.
func (s *silence) heard(number uint64) error {
	if s.since.IsZero() || number != s.asked {
		return fmt.Errorf("it said Pong %d, which nobody asked for", number)
	}
	s.since = time.Time{}
	return nil
}

// ask asks w whether it still reads.
func (p *pool) ask(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.ready && p.workers[w.Number] == w {
		w.silence.ask(w.Process, p.config.Silence)
	}
}

func (p *pool) heard(w *worker, number uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.silence.heard(number)
}

// overdue is how long a worker may owe an answer before its slots go to others.
const overdue = time.Second

// excuseSilent gives the slots of workers that have not answered for a while to other
// connections that wait. With become_user a user can stop their own worker, which keeps
// what it holds until it is ended for that.
func (p *pool) excuseSilent() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []*admission.Conn
	answering := false
	for _, w := range p.workers {
		since := w.Started
		if w.ready {
			w.silence.ask(w.Process, p.config.Silence)
			since = w.silence.since
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
	p.slots.excuse(list)
}
