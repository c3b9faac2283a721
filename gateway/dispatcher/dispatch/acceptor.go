package dispatch

import (
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/dispatcher/pool"
	"schedrestd/internal/sockdiag"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// An Acceptor receives accepted connections from the parent and passes them to
// the pools' loop, which decides whether to admit them. An Acceptor does not
// deal with workers. If no worker can take a connection, the connection waits
// in the queue of its pool. So a problem with the workers of one user does not
// delay the connections of other users.
type Acceptor struct {
	slots  *pool.Slots
	owners *owners
	rules  work.Admission
	pong   func(ipc.Message) // sends the parent a message
	log    *slog.Logger
}

// NewAcceptor returns an acceptor that submits connections to slots. It answers
// Pings with the function pong.
func NewAcceptor(o Options, slots *pool.Slots, pong func(ipc.Message)) *Acceptor {
	return &Acceptor{slots: slots, owners: newOwners(o), rules: o.Admission, pong: pong, log: o.Log}
}

// Run submits the connections that the parent sends over a channel, until the
// channel is closed. kernel answers which users the clients run as.
func (a *Acceptor) Run(from *ipc.Channel, kernel *sockdiag.Socket) {
	a.slots.Do(func() { a.slots.SetKernel(kernel) })
	for {
		m, err := from.Receive()
		if err != nil {
			return
		}
		switch msg := m.Message.(type) {
		case *ipc.Arrival:
			a.submit(msg, m.FDs[0], identify(msg, m.FDs[0], kernel))
		case *ipc.ArrivalPing:
			a.pong(&ipc.Pong{Number: msg.Number})
		default:
			a.log.Error("acceptor violated the protocol", "because", ipc.Unhandled(msg))
			return
		}
	}
}

// A client has the facts about the client of a connection.
type client struct {
	addr   netip.Addr           // zero on a UNIX socket
	uid    uint32               // ipc.NoID: unknown
	left   bool                 // uid is unknown, perhaps because the client has closed its socket
	socket *sockdiag.Connection // for looking it up; nil on a UNIX socket, and outside the parent's network namespace
}

// identify returns the facts about the client. The kernel knows the uid of a client on a UNIX
// socket. It also knows the uid of a client on the loopback interface of the
// parent's network namespace, until the client closes its socket. On loopback,
// the uid matters only for admission, since anyone with a token may connect.
func identify(m *ipc.Arrival, fd int, kernel *sockdiag.Socket) client {
	at, err := netip.ParseAddrPort(m.Addr)
	c := client{addr: at.Addr(), uid: m.UID}
	if err != nil || m.OtherNetns {
		return c
	}
	socket, err := sockdiag.IdentifyTCP(fd, at)
	if err == nil {
		c.socket = &socket
	}
	if !c.addr.IsLoopback() {
		return c
	}
	if err == nil {
		c.uid, err = kernel.ClientUID(socket)
	}
	if err != nil {
		c.uid, c.left = ipc.NoID, kernel.PeerEnded(socket) || isReset(fd)
	}
	return c
}

// isReset reports whether the client has reset the connection fd. What it has
// sent before can still be read.
func isReset(fd int) bool {
	_, _, err := sockdiag.Addrs(fd)
	return errors.Is(err, unix.ENOTCONN)
}

// submit passes a connection to the loop.
//
// If no slots are left, submit waits briefly, at most twice. The wait gives
// this process time to notice that workers have closed earlier connections.
// Otherwise, if connections arrived without a pause, workers would be asked to
// close idle connections of other clients although slots have become free: with
// 16 slots and 8 clients that connect for each request, 8 other clients lost 20 to
// 77 idle connections in 8 s, and with the wait at most 4.
func (a *Acceptor) submit(m *ipc.Arrival, fd int, from client) {
	c := &pool.Connection{Connection: m.Connection, Arrival: m.ID, Forbidden: m.DenyReason, FD: fd, Socket: from.socket, OtherNetns: m.OtherNetns}
	if m.Network == ipc.Unix && m.UID == ipc.NoID {
		a.slots.Do(func() { a.slots.DropUnidentified(c, errors.New(m.DenyReason)) })
		return
	}
	var full bool
	_ = a.slots.Call(func() error {
		c.Source = a.owners.sourceOf(from.addr, from.uid)
		c.Proxy = a.rules.IsProxy(from.addr, c.UID)
		c.Exempt = c.Proxy || a.rules.IsExempt(from.addr)
		c.Left = from.left
		full = a.slots.IsFull()
		return nil
	})
	for i := 0; i < 2 && full; i++ {
		time.Sleep(time.Millisecond)
		_ = a.slots.Call(func() error { full = a.slots.IsFull(); return nil })
	}
	a.slots.Do(func() { a.slots.Arrive(c) })
}
