package broker

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become/peer"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/rpc/client"
)

// deferredSocket returns a socket that connects to address with its first
// write, like the sockets that the dispatcher prepares.
func deferredSocket(t *testing.T, address string) int {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", address)
	must(t, err)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must(t, err)
	must(t, unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1))
	must(t, unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_NO_COOKIE, 1))
	must(t, unix.Connect(fd, &unix.SockaddrInet4{Port: a.Port, Addr: [4]byte(a.IP.To4())}))
	return fd
}

// brokerWithPool returns a Broker whose pool gets its sockets from the function
// make. It also returns two counters of the messages that the Broker sends:
// dials counts Dial messages, and orders counts DialBatch messages.
func brokerWithPool(t *testing.T, address string, make func() int) (e *Broker, dials, orders *atomic.Int32) {
	dials, orders = new(atomic.Int32), new(atomic.Int32)
	e = New(func(m ipc.Message, _ ...int) error {
		switch m := m.(type) {
		case *work.DialBatch:
			orders.Add(1)
			var fds []int
			for range ipc.DialBatchSize {
				fds = append(fds, make())
			}
			e.Deliver(ipc.Received{Message: &work.DialedBatch{DialBatch: *m}, FDs: fds})
		case *work.Dial:
			dials.Add(1)
			go e.Deliver(ipc.Received{Message: &work.Dialed{ID: m.ID, Owner: ipc.NoID, Server: ipc.NoID}, FDs: []int{connectingSocket(t, address)}})
		}
		return nil
	})
	return e, dials, orders
}

// echo serves connections that echo their input.
func echo(t *testing.T) string {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	return l.Addr().String()
}

// echoHello sends hello over a new connection and expects it back.
func echoHello(t *testing.T, e *Broker, address string) {
	t.Helper()
	nc, _, err := e.dialer.open(context.Background(), work.UpstreamController, 0, client.Address{Network: "tcp", Address: address})
	must(t, err)
	defer nc.Close()
	_, err = nc.Write([]byte("hello"))
	must(t, err)
	b := make([]byte, 5)
	if _, err := io.ReadFull(nc, b); err != nil || string(b) != "hello" {
		t.Fatalf("%q, %v", b, err)
	}
}

// TestPool checks that a worker that opens connections often sends few Dial
// messages. A worker that opens connections rarely must have no sockets in its
// pool.
func TestPool(t *testing.T) {
	address := echo(t)
	e, dials, orders := brokerWithPool(t, address, func() int { return deferredSocket(t, address) })
	for range busyRate - 1 {
		echoHello(t, e, address)
	}
	if d, o := dials.Load(), orders.Load(); d != busyRate-1 || o != 0 {
		t.Fatalf("below busyRate: %d requests for a connection and %d for sockets", d, o)
	}
	p := &e.dialer.pool
	p.mu.Lock()
	p.ofLocked(work.DialBatch{}).windowStart = time.Now().Add(time.Hour) // keeps the test within one window, even on a slow machine
	p.mu.Unlock()
	const more = 100
	for range more {
		echoHello(t, e, address)
	}
	if d, o := dials.Load(), orders.Load(); d > busyRate || o < more/ipc.DialBatchSize || o > more/ipc.DialBatchSize+2 {
		t.Errorf("%d requests for a connection and %d for sockets", d, o)
	}
	p.expire(work.DialBatch{}, time.Now())
	if left := len(p.ofLocked(work.DialBatch{}).list); left != 0 {
		t.Errorf("%d expired sockets are left", left)
	}
}

// TestPoolExpires checks that sockets that have been in the pool for too long
// are closed, and that newer ones are not.
func TestPoolExpires(t *testing.T) {
	var p socketPool
	daemon := work.DialBatch{Index: 1}
	now := time.Now()
	var fds []int
	for range 2 {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
		must(t, err)
		fds = append(fds, fd)
	}
	p.put(daemon, fds[:1], ipc.NoID, nil, now)
	p.put(daemon, fds[1:], ipc.NoID, nil, now.Add(time.Nanosecond))
	p.expire(daemon, now)
	if _, err := unix.FcntlInt(uintptr(fds[0]), unix.F_GETFD, 0); err != unix.EBADF {
		t.Errorf("the expired socket: %v", err)
	}
	if _, err := unix.FcntlInt(uintptr(fds[1]), unix.F_GETFD, 0); err != nil {
		t.Errorf("the new socket: %v", err)
	}
	if s, ok, _ := p.take(daemon, now); !ok || s.fd != fds[1] {
		t.Errorf("took %d, %t", s.fd, ok)
	}
	unix.Close(fds[1])
}

// TestPoolConnected checks that a connected socket is used, and that its
// connection reports the uid of the server. A socket that the daemon has
// closed, or that has been in the pool for too long, must not be used.
func TestPoolConnected(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	address := l.Addr().String()
	connected := func() (fd int, daemon net.Conn) {
		fd = connectingSocket(t, address)
		daemon, err := l.Accept()
		must(t, err)
		t.Cleanup(func() { daemon.Close() })
		return fd, daemon
	}
	closed, daemon := connected()
	daemon.Close()
	open, daemon := connected()
	e := New(func(m ipc.Message, _ ...int) error { t.Errorf("the dispatcher was sent %T", m); return nil })
	connectedTo := func(fds ...int) { e.Deliver(ipc.Received{Message: &work.ConnectedBatch{Server: 4711}, FDs: fds}) }
	connectedTo(closed, open)
	nc, _, err := e.dialer.open(context.Background(), work.UpstreamController, 0, client.Address{Network: "tcp", Address: address})
	must(t, err)
	defer nc.Close()
	if uid, known := nc.(peer.BrokeredConn).Server(); uid != 4711 || !known {
		t.Errorf("the server has uid %d, %t", uid, known)
	}
	if _, err := unix.FcntlInt(uintptr(closed), unix.F_GETFD, 0); err != unix.EBADF {
		t.Errorf("the socket that the daemon closed: %v", err)
	}
	_, err = nc.Write([]byte("hello"))
	must(t, err)
	b := make([]byte, 5)
	if _, err := io.ReadFull(daemon, b); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}

	unused, daemon := connected()
	connectedTo(unused)
	must(t, daemon.SetReadDeadline(time.Now().Add(time.Minute)))
	if _, err := daemon.Read(b); err != io.EOF {
		t.Errorf("a socket that was not used in time: %v", err)
	}
}

// TestPoolDisabled checks sockets that do not connect with their first write.
// They must be discarded, and no more sockets may be requested.
func TestPoolDisabled(t *testing.T) {
	address := echo(t)
	e, dials, orders := brokerWithPool(t, address, func() int {
		fd, err := unix.MemfdCreate("silent", unix.MFD_CLOEXEC) // accepts an empty write, and has no peer
		must(t, err)
		return fd
	})
	for range 2 * busyRate {
		echoHello(t, e, address)
	}
	if d, o := dials.Load(), orders.Load(); d != 2*busyRate || o != 1 {
		t.Errorf("%d requests for a connection and %d for sockets", d, o)
	}
}

// TestPoolRefused checks that if a daemon refuses the connection of a pooled
// socket, the error is the same as without the pool.
func TestPoolRefused(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	closedAddr := l.Addr().String()
	l.Close()
	e := New(func(ipc.Message, ...int) error { t.Error("the dispatcher was asked"); return nil })
	e.Deliver(ipc.Received{Message: new(work.DialedBatch), FDs: []int{deferredSocket(t, closedAddr)}})
	_, _, err = e.dialer.open(context.Background(), work.UpstreamController, 0, client.Address{Network: "tcp", Address: closedAddr})
	if op := (*net.OpError)(nil); !errors.Is(err, unix.ECONNREFUSED) || !errors.As(err, &op) || op.Op != "dial" {
		t.Errorf("%v", err)
	}
}
