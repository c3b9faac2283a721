package privsep

import (
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// door is where connections come in: the listeners and the count of what is handled at one
// time. It knows no worker, and waits for none: a connection that no worker can take now
// waits in the queue of its pool, so that one identity's trouble does not stop the
// accepting for others.
type door struct {
	listeners []*listener
	slots     *slots
	host      host
	log       *slog.Logger
	quit      chan struct{} // closed when the listeners are
	once      sync.Once
}

func newDoor(listeners []*listener, slots *slots, log *slog.Logger) *door {
	return &door{listeners: listeners, slots: slots, log: log, quit: make(chan struct{})}
}

// open starts to accept, for h.
func (d *door) open(h host) {
	d.host = h
	d.slots.admit = h.take
	for _, l := range d.listeners {
		go d.accept(l)
	}
}

// close stops listening. What was accepted stays with its pool; what is parked has none.
func (d *door) close() {
	d.once.Do(func() {
		close(d.quit)
		closeAll(d.listeners)
		d.slots.sources.close()
	})
}

// accept takes connections from l and gives them to a pool, until the door closes. It
// holds a slot before it accepts, and no slot while nobody knocks, so that idle
// listeners take nothing from busy ones; and it asks for one that is taken only when
// somebody knocks, because others give way for it.
func (d *door) accept(l *listener) {
	var trouble time.Duration
	for {
		if !d.slots.try() && (l.wait() != nil || !d.slots.take(d.quit)) {
			return
		}
		fd, peer, err := l.acceptOne()
		switch {
		case err == nil:
			trouble = 0
			d.admit(fd, l, peer)
			continue
		case err == unix.EAGAIN:
			d.slots.free()
			d.slots.calm()
			if l.wait() != nil {
				return
			}
			continue
		}
		d.slots.free()
		if errors.Is(err, os.ErrClosed) || d.isClosed() {
			return
		}
		if gone(err) {
			continue
		}
		// Out of descriptors or of memory: pause, or this loop would spin.
		trouble = min(max(2*trouble, 10*time.Millisecond), time.Second)
		d.log.Warn("can't accept a connection", "listener", l.name, "error", err, "pause", trouble)
		time.Sleep(trouble)
	}
}

// admit asks the kernel about an accepted connection, whose slot is taken, and gives it
// to who serves its peer. It does not wait.
func (d *door) admit(fd int, l *listener, peer unix.Sockaddr) {
	d.slots.counts.accepted.add(1)
	facts, err := l.facts(fd, peer)
	c := &connection{Connection: facts, fd: fd}
	if err != nil {
		d.slots.drop(c, 0, err.Error())
		return
	}
	c.source = sourceOf(peer, facts)
	addr, a := addressOf(peer), &d.slots.penalties.admission
	speaks := a.Speaks(addr, facts.UID)
	if c.exempt = speaks || a.Exempts(addr); d.slots.penalties.wait(c) > 0 {
		d.slots.drop(c, statusTooMany, "its source offended too often, and has to wait")
		return
	}
	if speaks { // its connections are those of all who come through it, and no one's share
		d.host.take(c)
		return
	}
	switch d.slots.sources.enter(c) {
	case entered:
		d.host.take(c)
	case parked:
		d.slots.counts.parked.add(1)
		d.slots.free()
		d.slots.pressSource(c)
	case refused:
		d.slots.drop(c, statusUnavailable, "too many connections of its source wait")
	}
}

func (d *door) isClosed() bool {
	select {
	case <-d.quit:
		return true
	default:
		return false
	}
}
