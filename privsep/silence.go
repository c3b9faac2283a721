package privsep

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"schedrestd/ipc"
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
	}
}

// ask sends a Ping when the last one was answered, or judges how long it is due.
func (p *pool) ask(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !w.ready || p.workers[w.number] != w:
	case w.waiting.IsZero():
		w.asked++
		w.waiting = time.Now()
		// A full channel is the same silence: the next ticks judge it.
		_ = w.channel.TrySend(&ipc.Ping{Number: w.asked})
	case time.Since(w.waiting) > p.config.Silence:
		w.condemn(fmt.Sprintf("it has not read its channel for %s", p.config.Silence))
	}
}

// heard takes the answer to the Ping that waits, and no other: else a worker could
// keep the parent busy with answers that nobody asked for.
func (p *pool) heard(w *worker, number uint64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.waiting.IsZero() || number != w.asked {
		return fmt.Errorf("it said Pong %d, which nobody asked for", number)
	}
	w.waiting = time.Time{}
	return nil
}
