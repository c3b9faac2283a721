package privsep

import (
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

// door is where connections come in: the listeners, the count of what is handled at one
// time, and the choice of the pool that serves a peer. It knows no worker, and waits
// for none: a connection that no worker can take now waits in the queue of its
// pool, so that one identity's trouble does not stop the accepting for others.
type door struct {
	listeners []*listener
	slots     *slots
	pool      *pool
	log       *slog.Logger
	quit      chan struct{} // closed when the listeners are
	once      sync.Once
}

func newDoor(listeners []*listener, slots *slots, log *slog.Logger) *door {
	return &door{listeners: listeners, slots: slots, log: log, quit: make(chan struct{})}
}

// open starts to accept, for p.
func (d *door) open(p *pool) {
	d.pool = p
	for _, l := range d.listeners {
		go d.accept(l)
	}
}

// close stops listening. What was accepted stays with its pool.
func (d *door) close() {
	d.once.Do(func() {
		close(d.quit)
		closeAll(d.listeners)
	})
}

// choose is the pool that serves a peer: there is one identity, and one pool. With a
// worker for each (uid, gid) that the kernel vouches for, this looks the pair up
// and starts the pool that is not there; a share of the slots for each pair belongs
// here too, or one user's waiting connections could hold them all.
func (d *door) choose(ipc.Connection) *pool { return d.pool }

// accept takes connections from l and gives them to a pool, until the door closes. It
// holds a slot before it accepts, and no slot while nobody knocks, so that idle
// listeners take nothing from busy ones.
func (d *door) accept(l *listener) {
	var trouble time.Duration
	for d.slots.take(d.quit) {
		fd, peer, err := l.acceptOne()
		switch {
		case err == nil:
			trouble = 0
			d.admit(fd, l, peer)
			continue
		case err == unix.EAGAIN:
			d.slots.free(1)
			if l.wait() != nil {
				return
			}
			continue
		}
		d.slots.free(1)
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
// to the pool of its peer. It does not wait.
func (d *door) admit(fd int, l *listener, peer unix.Sockaddr) {
	facts, err := l.facts(fd, peer)
	c := &connection{Connection: facts, fd: fd}
	if err != nil {
		d.slots.drop(c, err.Error())
		return
	}
	d.choose(facts).take(c)
}

func (d *door) isClosed() bool {
	select {
	case <-d.quit:
		return true
	default:
		return false
	}
}
