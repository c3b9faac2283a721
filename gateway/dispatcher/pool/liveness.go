package pool

import (
	"time"

	"schedrestd/gateway/dispatcher/admission"
)

// checkLiveness kills workers that do not read their channel, and workers that
// should already have exited. It replaces workers that keep connections that
// are gone.
func (p *Pool) checkLiveness() {
	for _, w := range p.workers {
		if w.ready {
			w.liveness.Check(w.Process, p.PingTimeout)
		}
	}
	p.checkGone()
	p.EndIdle(p.PingTimeout)
	p.endRetired()
}

// pingLimit is how long a worker may leave a Ping unanswered before other
// connections get its slots.
const pingLimit = time.Second

// endExcuse ends what excuseUnresponsive has begun for w, which answers again. The slots
// of connections that are gone stay lent (checkGone).
func (p *Pool) endExcuse(w *worker) {
	if p.Slots.Lent() == 0 {
		return
	}
	var list []*admission.Conn
	for _, c := range w.held {
		if c.goneSince.IsZero() {
			list = append(list, &c.Conn)
		}
	}
	p.Slots.Responsive(list)
}

// excuseUnresponsive lets waiting connections use the slots of workers that
// have not answered for a while. With become_user, users can stop their own
// workers, and a stopped worker keeps its connections until the dispatcher
// kills it.
func (p *Pool) excuseUnresponsive() {
	var list []*admission.Conn
	answering := false
	for _, w := range p.workers {
		since := w.Started
		if w.ready {
			w.liveness.Check(w.Process, p.PingTimeout)
			since = w.liveness.PendingSince()
		}
		if since.IsZero() || time.Since(since) < pingLimit {
			answering = true
			list = append(list, p.goneFor(w, p.slotLimit)...)
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
	p.Slots.Unresponsive(list)
}
