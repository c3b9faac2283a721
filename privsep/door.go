package privsep

import (
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/privsep/listen"
	"schedrestd/sockdiag"
)

// door is where connections come in: the listeners and the count of what is handled at one
// time. It knows no worker, and waits for none: a connection that no worker can take now
// waits in the queue of its pool, so that one identity's trouble does not stop the
// accepting for others.
type door struct {
	listeners []*listen.Listener
	slots     *slots
	owners    *owners
	host      host
	log       *slog.Logger
	quit      chan struct{} // closed when the listeners are
	once      sync.Once
}

func newDoor(listeners []*listen.Listener, slots *slots, owners *owners, log *slog.Logger) *door {
	return &door{listeners: listeners, slots: slots, owners: owners, log: log, quit: make(chan struct{})}
}

// open starts to accept, for h.
func (d *door) open(h host) {
	d.host = h
	d.slots.admit = h.take
	for _, l := range d.listeners {
		go d.accept(l)
	}
}

// close stops listening. What was accepted and has a slot stays with its pool.
func (d *door) close() {
	d.once.Do(func() {
		close(d.quit)
		listen.CloseAll(d.listeners)
		d.slots.close()
	})
}

// accept takes connections from l and gives them to a pool, until the door closes. Those
// that find no slot wait, so that the parent knows whose they are.
func (d *door) accept(l *listen.Listener) {
	var trouble time.Duration
	for {
		d.hesitate(l)
		fd, peer, err := l.Accept()
		switch {
		case err == nil:
			trouble = 0
			d.admit(fd, l, peer)
			continue
		case err == unix.EAGAIN:
			if l.Wait() != nil {
				return
			}
			continue
		}
		if errors.Is(err, os.ErrClosed) || d.isClosed() {
			return
		}
		if listen.IsGone(err) {
			continue
		}
		// Out of descriptors or of memory: pause, or this loop would spin.
		trouble = min(max(2*trouble, 10*time.Millisecond), time.Second)
		d.log.Warn("can't accept a connection", "listener", l.Name, "error", err, "pause", trouble)
		time.Sleep(trouble)
	}
}

// hesitate waits twice for a moment when the slots have just run out. While connections
// are accepted without a pause, the parent's one thread does not hear that workers have
// ended some, and a connection would have to give way for nothing.
func (d *door) hesitate(l *listen.Listener) {
	for range 2 {
		if d.slots.isFull() && l.Wait() == nil {
			time.Sleep(time.Millisecond)
		}
	}
}

// admit asks the kernel about an accepted connection, and gives it to the host of its
// peer when it has a slot. It does not wait.
func (d *door) admit(fd int, l *listen.Listener, peer unix.Sockaddr) {
	d.slots.counts.accepted.add(1)
	facts, err := l.Facts(fd, peer)
	c := &connection{Connection: facts, fd: fd}
	if err != nil {
		d.slots.turnAway(c, 0, 0, err.Error())
		return
	}
	addr, rules := sockdiag.AddrPort(peer).Addr(), &d.slots.rules
	c.Source = d.owners.sourceOf(addr, l.ClientUID(fd, addr, facts))
	c.Proxy = rules.Speaks(addr, facts.UID)
	c.Exempt = c.Proxy || rules.Exempts(addr)
	if d.slots.enter(c) {
		d.host.take(c)
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
