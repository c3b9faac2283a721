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
			addr, uid, left := client(msg, m.FDs[0], kernel)
			a.submit(msg, m.FDs[0], addr, uid, left)
		case *ipc.ArrivalPing:
			a.pong(&ipc.Pong{Number: msg.Number})
		default:
			a.log.Error("acceptor violated the protocol", "because", ipc.Unhandled(msg))
			return
		}
	}
}

// client returns the address and the uid of the client. The kernel knows the
// uid of a client on a UNIX socket. It also knows the uid of a client on the
// loopback interface of the parent's network namespace, until the client closes
// its socket. On loopback, the uid matters only for admission, since anyone
// with a token may connect. If the kernel does not know the uid, uid is
// ipc.NoID, and left reports whether the reason may be that the client has closed
// its socket.
func client(m *ipc.Arrival, fd int, kernel *sockdiag.Socket) (addr netip.Addr, uid uint32, left bool) {
	if at, err := netip.ParseAddrPort(m.Addr); err == nil {
		addr = at.Addr()
	}
	if !addr.IsLoopback() || m.OtherNetns {
		return addr, m.UID, false
	}
	local, remote, err := sockdiag.Addrs(fd)
	if err == nil {
		uid, err = kernel.ClientUID(local, remote)
	}
	if err != nil {
		return addr, ipc.NoID, kernel.PeerEnded(local, remote) || isReset(fd)
	}
	return addr, uid, false
}

// isReset reports whether the client has reset the connection fd. What it has
// sent before can still be read.
func isReset(fd int) bool {
	_, _, err := sockdiag.Addrs(fd)
	return errors.Is(err, unix.ENOTCONN)
}

// submit passes a connection to the loop. addr and uid identify the client; left
// is a result of client.
//
// If no slots are left, submit waits briefly, at most twice. The wait gives
// this process time to notice that workers have closed earlier connections.
// Otherwise, if connections arrived without a pause, workers would be asked to
// close idle connections of other clients although slots have become free: with
// 16 slots and 8 clients that connect for each request, 8 other clients lost 20 to
// 77 idle connections in 8 s, and with the wait at most 4.
func (a *Acceptor) submit(m *ipc.Arrival, fd int, addr netip.Addr, uid uint32, left bool) {
	c := &pool.Connection{Connection: m.Connection, Arrival: m.ID, Forbidden: m.DenyReason, FD: fd, OtherNetns: m.OtherNetns}
	if m.Network == ipc.Unix && m.UID == ipc.NoID {
		a.slots.Do(func() { a.slots.DropUnidentified(c, errors.New(m.DenyReason)) })
		return
	}
	var full bool
	_ = a.slots.Call(func() error {
		c.Source = a.owners.sourceOf(addr, uid)
		c.Proxy = a.rules.IsProxy(addr, c.UID)
		c.Exempt = c.Proxy || a.rules.IsExempt(addr)
		c.Left = left
		full = a.slots.IsFull()
		return nil
	})
	for i := 0; i < 2 && full; i++ {
		time.Sleep(time.Millisecond)
		_ = a.slots.Call(func() error { full = a.slots.IsFull(); return nil })
	}
	a.slots.Do(func() { a.slots.Arrive(c) })
}
