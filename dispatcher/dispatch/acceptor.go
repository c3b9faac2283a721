package dispatch

import (
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"schedrestd/dispatcher/pool"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// Acceptor receives accepted connections from the parent and submits them to the
// loop for a decision. It knows no worker and waits for none: a connection that
// no worker can take now waits in the queue of its pool, so that problems of one
// identity do not delay the others.
type Acceptor struct {
	slots  *pool.Slots
	owners *owners
	rules  work.Admission
	log    *slog.Logger
}

// NewAcceptor returns an acceptor that submits connections to slots.
func NewAcceptor(o Options, slots *pool.Slots) *Acceptor {
	return &Acceptor{slots: slots, owners: newOwners(o), rules: o.Admission, log: o.Log}
}

// Run submits the connections that come until from is closed.
func (a *Acceptor) Run(from *ipc.Channel) {
	for {
		m, err := from.Receive()
		if err != nil {
			return
		}
		switch msg := m.Message.(type) {
		case *ipc.Arrival:
			a.hesitate()
			a.submit(msg, m.FDs[0])
		default:
			a.log.Error("acceptor broke the protocol", "because", ipc.Unheard(msg))
			return
		}
	}
}

// hesitate waits for a moment when the slots have just run out, at most twice.
// While connections are accepted without a pause, this process does not notice
// that workers have closed some, and a connection would have to be closed
// needlessly.
func (a *Acceptor) hesitate() {
	for range 2 {
		full := false
		_ = a.slots.Call(func() error { full = a.slots.IsFull(); return nil })
		if full {
			time.Sleep(time.Millisecond)
		}
	}
}

// submit passes a connection to the loop.
func (a *Acceptor) submit(m *ipc.Arrival, fd int) {
	c := &pool.Connection{Connection: m.Connection, Arrival: m.ID, Forbidden: m.Forbidden, FD: fd}
	if m.Network == ipc.Unix && m.UID == ipc.NoID {
		a.slots.Do(func() { a.slots.Nameless(c, errors.New(m.Forbidden)) })
		return
	}
	var addr netip.Addr
	if at, err := netip.ParseAddrPort(m.Addr); err == nil {
		addr = at.Addr()
	}
	a.slots.Do(func() { a.arrived(c, addr, m.Client) })
}

// arrived submits c for admission, a connection from addr by a process of uid.
func (a *Acceptor) arrived(c *pool.Connection, addr netip.Addr, uid uint32) {
	c.Source = a.owners.sourceOf(addr, uid)
	c.Proxy = a.rules.Speaks(addr, c.UID)
	c.Exempt = c.Proxy || a.rules.Exempts(addr)
	a.slots.Arrive(c)
}
