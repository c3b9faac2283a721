package privsep

import (
	"maps"
	"slices"
	"time"

	"schedrestd/privsep/admission"
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

// ask asks w whether it still reads.
func (p *pool) ask(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.ready && p.workers[w.Number] == w {
		w.silence.Ask(w.Process, p.config.Silence)
	}
}

func (p *pool) heard(w *worker, number uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.silence.Answered(number)
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
			w.silence.Ask(w.Process, p.config.Silence)
			since = w.silence.Since()
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
