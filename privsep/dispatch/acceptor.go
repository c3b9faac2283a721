package dispatch

import (
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/privsep/listen"
	"schedrestd/privsep/pool"
	"schedrestd/sockdiag"
)

// Acceptor accepts connections and submits them to the loop for a decision. A
// goroutine for each listener asks the kernel about peers. It knows no worker
// and waits for none: a connection that no worker can take now waits in the
// queue of its pool, so that problems of one identity do not delay the others.
type Acceptor struct {
	slots     *pool.Slots
	listeners []*listen.Listener
	owners    *owners
	rules     ipc.Admission
	log       *slog.Logger
}

// NewAcceptor returns an acceptor for listeners, which it closes.
func NewAcceptor(o Options, slots *pool.Slots, listeners []*listen.Listener) *Acceptor {
	return &Acceptor{slots: slots, listeners: listeners, owners: newOwners(o), rules: o.Admission, log: o.Log}
}

// Start starts to accept.
func (a *Acceptor) Start() {
	for _, l := range a.listeners {
		go a.accept(l)
	}
}

// Close stops listening. Accepted connections that have a slot stay with their
// pool.
func (a *Acceptor) Close() {
	listen.CloseAll(a.listeners)
	a.listeners = nil
	a.slots.Do(a.slots.Close)
}

// accept takes connections from l until l is closed. Connections without a slot
// wait, so that the parent knows their owners.
func (a *Acceptor) accept(l *listen.Listener) {
	var trouble time.Duration
	for {
		a.hesitate(l)
		fd, peer, err := l.Accept()
		switch {
		case err == nil:
			trouble = 0
			a.identify(fd, l, peer)
			continue
		case err == unix.EAGAIN:
			if l.Wait() != nil {
				return
			}
			continue
		case errors.Is(err, os.ErrClosed):
			return
		case listen.IsGone(err):
			continue
		}
		// Out of descriptors or of memory: pause, or this loop would spin.
		trouble = min(max(2*trouble, 10*time.Millisecond), time.Second)
		a.log.Warn("can't accept a connection", "listener", l.Name, "error", err, "pause", trouble)
		time.Sleep(trouble)
	}
}

// hesitate waits twice for a moment when the slots have just run out. While
// connections are accepted without a pause, the parent's one thread does not
// notice that workers have closed some, and a connection would have to be
// closed needlessly.
func (a *Acceptor) hesitate(l *listen.Listener) {
	for range 2 {
		full := false
		_ = a.slots.Call(func() error { full = a.slots.IsFull(); return nil })
		if full && l.Wait() == nil {
			time.Sleep(time.Millisecond)
		}
	}
}

// identify asks the kernel about an accepted connection, and passes it to the Loop.
func (a *Acceptor) identify(fd int, l *listen.Listener, peer unix.Sockaddr) {
	facts, err := l.Facts(fd, peer)
	c := &pool.Connection{Connection: facts, FD: fd}
	if err != nil {
		a.slots.Do(func() { a.slots.Nameless(c, err) })
		return
	}
	addr := sockdiag.AddrPort(peer).Addr()
	uid := l.ClientUID(fd, addr, facts)
	a.slots.Do(func() { a.arrived(c, addr, uid) })
}

// arrived submits c for admission, a connection from addr by a process of uid.
func (a *Acceptor) arrived(c *pool.Connection, addr netip.Addr, uid uint32) {
	c.Source = a.owners.sourceOf(addr, uid)
	c.Proxy = a.rules.Speaks(addr, c.UID)
	c.Exempt = c.Proxy || a.rules.Exempts(addr)
	a.slots.Arrive(c)
}
