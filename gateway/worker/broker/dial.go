package broker

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/rpc/client"
)

// A dialer dials daemons through the dispatcher.
type dialer struct {
	dispatcher *dispatcher
	pool       socketPool // sockets for future connections
}

// A list has the addresses of the daemons of one list in the worker's Setup.
// The first daemon of the list may also have a UNIX socket.
type list struct {
	*dialer
	upstream  work.Upstream
	addresses []work.Address
	socket    string // alternative path to the first daemon; "" for none
}

// dial connects to the address a, which must be in the list.
func (l list) dial(ctx context.Context, a client.Address) (net.Conn, error) {
	if a.Network == "unix" && a.Address == l.socket {
		nc, _, err := l.open(ctx, work.UpstreamSocket, 0, a)
		return nc, err
	}
	i := slices.IndexFunc(l.addresses, func(b work.Address) bool { return b.Network == a.Network && b.Address == a.Address })
	if i < 0 {
		return nil, fmt.Errorf("dial %s: not a configured daemon", a.Address)
	}
	nc, _, err := l.open(ctx, l.upstream, uint8(i), a)
	return nc, err
}

// redialDelay is how long the worker waits after the dispatcher has told it to
// try again.
const redialDelay = 50 * time.Millisecond

// open gets a descriptor from the dispatcher, and turns it into a connection to
// a daemon. For a UNIX socket, it also returns the owner of the socket's
// directory.
func (d *dialer) open(ctx context.Context, upstream work.Upstream, index uint8, a client.Address) (nc net.Conn, owner uint32, err error) {
	tried := triedBy(a)
	if a.Network == "tcp" && len(tried) == 0 {
		nc, err := d.pooledConn(ctx, work.DialBatch{Upstream: upstream, Index: index, Connected: a.Idle}, a)
		if nc != nil || err != nil {
			return nc, ipc.NoID, err
		}
	}
	for {
		r, err := d.dispatcher.ask(ctx, func(id uint64) ipc.Message { return &work.Dial{ID: id, Upstream: upstream, Index: index, Tried: tried} })
		if err != nil {
			return nil, 0, dialError(a, err)
		}
		switch m := r.Message.(type) {
		case *work.Dialed:
			a := record(a, m.At)
			nc, err := completeDial(ctx, r.FDs[0], m.Server, a)
			return nc, m.Owner, err
		case *work.DialFailed:
			if m.Unresolved {
				return nil, 0, dialError(a, client.ErrUnresolved)
			}
			if unix.Errno(m.Errno) != unix.EAGAIN {
				return nil, 0, dialError(record(a, m.At), os.NewSyscallError("connect", unix.Errno(m.Errno)))
			}
		}
		select {
		case <-ctx.Done():
			return nil, 0, dialError(a, ctx.Err())
		case <-time.After(redialDelay):
		}
	}
}

// triedBy returns the addresses of a's host that this call has tried.
func triedBy(a client.Address) []netip.Addr {
	if a.Tried == nil {
		return nil
	}
	return *a.Tried
}

// record adds the address at to those that this call has tried, if the dispatcher has
// chosen one, and returns a with this address.
func record(a client.Address, at work.At) client.Address {
	_, port, ok := work.Address{Network: a.Network, Address: a.Address}.Named()
	if !ok || len(at) == 0 {
		return a
	}
	if a.Tried != nil && len(*a.Tried) < work.MaxAddresses && !slices.Contains(*a.Tried, at[0]) {
		*a.Tried = append(*a.Tried, at[0])
	}
	a.Address = net.JoinHostPort(at[0].String(), port)
	return a
}

// pooledConn takes a socket from the pool for one daemon, and returns a
// connection that uses it. It returns nil if the pool is empty, or if its
// sockets do not connect with the first write.
func (d *dialer) pooledConn(ctx context.Context, batch work.DialBatch, a client.Address) (net.Conn, error) {
	for {
		s, ok, more := d.pool.take(batch, time.Now())
		if more {
			_ = d.dispatcher.send(&batch) // without sockets, the worker sends a Dial for each connection
		}
		switch {
		case !ok:
			return nil, nil
		case s.server == ipc.NoID:
			nc, err := startConnect(ctx, s.fd, record(a, s.at))
			if err == errNotStarted {
				d.pool.disable(batch)
				return nil, nil
			}
			return nc, err
		case isIdle(s.fd):
			return newDaemonConn(s.fd, s.server, record(a, s.at)), nil
		}
		unix.Close(s.fd)
	}
}
