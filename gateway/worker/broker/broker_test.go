package broker

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/rpc/client"
)

// brokerWithDispatcher returns a Broker whose requests to the dispatcher are
// answered by f.
func brokerWithDispatcher(f func(ipc.Message) ipc.Received) *Broker {
	var e *Broker
	e = New(func(m ipc.Message, _ ...int) error {
		if r := f(m); r.Message != nil {
			go e.Deliver(r)
		}
		return nil
	})
	return e
}

// brokerWithResolver returns a Broker whose look-ups are answered by f.
func brokerWithResolver(t *testing.T, f func(*work.Lookup) *work.LookupResult) *Broker {
	t.Helper()
	e := New(nil)
	resolver, fd, err := ipc.Pair(ipc.Resolver, ipc.Worker)
	must(t, err)
	t.Cleanup(func() { resolver.Close() })
	must(t, e.Connect(&work.ServiceChannel{Service: ipc.Resolver}, fd))
	go func() {
		for {
			m, err := resolver.Receive()
			if err != nil {
				return
			}
			if a := f(m.Message.(*work.Lookup)); a != nil {
				_ = resolver.Send(a)
			}
		}
	}()
	return e
}

// connectingSocket returns a socket that is still connecting, like the sockets
// that the dispatcher passes.
func connectingSocket(t *testing.T, address string) int {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", address)
	must(t, err)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	must(t, err)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: a.Port, Addr: [4]byte(a.IP.To4())}); err != nil && err != unix.EINPROGRESS {
		t.Fatal(err)
	}
	return fd
}

// TestDialTCP checks that the socket from the dispatcher becomes a connection.
// The dispatcher may first answer that the worker has to try again.
func TestDialTCP(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
	tries := 0
	e := brokerWithDispatcher(func(m ipc.Message) ipc.Received {
		d := m.(*work.Dial)
		if d.Upstream != work.UpstreamAccounting || d.Index != 1 {
			t.Errorf("asked for %+v", d)
		}
		if tries++; tries == 1 {
			return ipc.Received{Message: &work.DialFailed{ID: d.ID, Errno: uint16(unix.EAGAIN)}}
		}
		return ipc.Received{Message: &work.Dialed{ID: d.ID, Owner: ipc.NoID, Server: ipc.NoID}, FDs: []int{connectingSocket(t, l.Addr().String())}}
	})
	list := []work.Address{{Name: "a", Network: "tcp", Address: "192.0.2.1:1"}, {Name: "b", Network: "tcp", Address: l.Addr().String()}}
	dial := e.Dialer(work.UpstreamAccounting, list, "")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	nc, err := dial(ctx, client.Address{Network: "tcp", Address: l.Addr().String()})
	must(t, err)
	defer nc.Close()
	_, err = nc.Write([]byte("hello"))
	must(t, err)
	b := make([]byte, 5)
	if _, err := io.ReadFull(nc, b); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	must(t, nc.SetReadDeadline(time.Now().Add(time.Millisecond)))
	if _, err := nc.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("past the deadline: %v", err)
	}
	if _, err := dial(ctx, client.Address{Network: "tcp", Address: "192.0.2.9:1"}); err == nil {
		t.Error("dialled an address that is not configured")
	}
}

// TestDialNamed checks the dials of a call to a host with several addresses: each must
// name those that were tried, and the connection's address is the one that was used.
func TestDialNamed(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	refused, used := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("127.0.0.1")
	e := brokerWithDispatcher(func(m ipc.Message) ipc.Received {
		d := m.(*work.Dial)
		switch len(d.Tried) {
		case 0:
			return ipc.Received{Message: &work.DialFailed{ID: d.ID, Errno: uint16(unix.ECONNREFUSED), At: work.At{refused}}}
		case 1:
			return ipc.Received{Message: &work.Dialed{ID: d.ID, Owner: ipc.NoID, Server: ipc.NoID, At: work.At{used}}, FDs: []int{connectingSocket(t, l.Addr().String())}}
		}
		return ipc.Received{Message: &work.DialFailed{ID: d.ID, Errno: uint16(unix.EHOSTUNREACH), Unresolved: true}}
	})
	a := client.Address{Network: "tcp", Address: "ctl:" + port, Tried: new([]netip.Addr)}
	dial := e.Dialer(work.UpstreamController, []work.Address{{Network: "tcp", Address: "ctl:" + port}}, "")
	if _, err := dial(context.Background(), a); !errors.Is(err, unix.ECONNREFUSED) || !strings.Contains(err.Error(), "192.0.2.1:"+port) {
		t.Errorf("the first address: %v", err)
	}
	nc, err := dial(context.Background(), a)
	must(t, err)
	defer nc.Close()
	if nc.RemoteAddr().String() != l.Addr().String() || !slices.Equal(*a.Tried, []netip.Addr{refused, used}) {
		t.Errorf("the second address is %s, tried %v", nc.RemoteAddr(), *a.Tried)
	}
	if _, err := dial(context.Background(), a); !errors.Is(err, client.ErrUnresolved) || len(*a.Tried) != 2 {
		t.Errorf("no address: %v, tried %v", err, *a.Tried)
	}
}

// TestDialFails checks that the error of a failed dial contains the kernel's
// error number. If a descriptor arrives after the dial has timed out, the
// worker must close it.
func TestDialFails(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	closedAddr := l.Addr().String()
	l.Close()
	a := client.Address{Network: "tcp", Address: closedAddr}
	list := []work.Address{{Network: "tcp", Address: closedAddr}}
	e := brokerWithDispatcher(func(m ipc.Message) ipc.Received {
		return ipc.Received{Message: &work.DialFailed{ID: m.(*work.Dial).ID, Errno: uint16(unix.ENETUNREACH)}}
	})
	_, err = e.Dialer(work.UpstreamController, list, "")(context.Background(), a)
	if !errors.Is(err, unix.ENETUNREACH) || !strings.Contains(err.Error(), "dial tcp "+closedAddr) {
		t.Errorf("unreachable: %v", err)
	}

	var delayed ipc.Received
	e = New(func(m ipc.Message, _ ...int) error {
		fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
		must(t, err)
		delayed = ipc.Received{Message: &work.Dialed{ID: m.(*work.Dial).ID}, FDs: []int{fd}}
		return nil
	})
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if _, err := e.Dialer(work.UpstreamController, list, "")(ctx, a); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without an answer: %v", err)
	}
	e.Deliver(delayed)
	if _, err := unix.FcntlInt(uintptr(delayed.FDs[0]), unix.F_GETFD, 0); err != unix.EBADF {
		t.Errorf("a descriptor that arrived too late is open: %v", err)
	}
}

// TestDialUnix checks that the worker connects to a UNIX socket by itself. It
// must connect to the socket to which the dispatcher's descriptor refers, and
// to no other socket.
func TestDialUnix(t *testing.T) {
	path := filepath.Join(sockettest.Dir(t), "s")
	l, err := net.Listen("unix", path)
	must(t, err)
	defer l.Close()
	e := brokerWithDispatcher(func(m ipc.Message) ipc.Received {
		d := m.(*work.Dial)
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		must(t, err)
		return ipc.Received{Message: &work.Dialed{ID: d.ID, Owner: 7}, FDs: []int{fd}}
	})
	nc, owner, err := e.dialer.open(context.Background(), work.UpstreamMunge, 0, client.Address{Network: "unix", Address: path})
	must(t, err)
	defer nc.Close()
	if owner != 7 || nc.RemoteAddr().String() != path || nc.RemoteAddr().Network() != "unix" {
		t.Errorf("owner %d, %v", owner, nc.RemoteAddr())
	}
	c, err := l.Accept()
	must(t, err)
	c.Write([]byte("x"))
	c.Close()
	if b, err := io.ReadAll(nc); err != nil || string(b) != "x" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestBrokerNames checks three look-ups by id: one of an id that has a name,
// one of an id that has no name, and one that fails.
func TestBrokerNames(t *testing.T) {
	e := brokerWithResolver(t, func(q *work.Lookup) *work.LookupResult {
		switch {
		case q.Number == 1 && !q.Group:
			return &work.LookupResult{ID: q.ID, Available: true, Name: "alice"}
		case q.Number == 2:
			return &work.LookupResult{ID: q.ID, Available: true}
		}
		return &work.LookupResult{ID: q.ID}
	})
	u := e.Users()
	if got := u.User(1); got != "alice" {
		t.Errorf("user 1: %q", got)
	}
	if got := u.Group(2); got != "2" {
		t.Errorf("group 2: %q", got)
	}
	if got := u.Group(3); got != "3" {
		t.Errorf("group 3: %q", got)
	}
	if _, err := e.resolver.name(true, 3); !errors.Is(err, errNoUserDatabase) {
		t.Errorf("group 3: %v", err)
	}
}

// TestBrokerNumbers checks look-ups of names that exist, look-ups of names that
// do not exist, and look-ups that fail. The worker must not send a name that
// the resolver would not accept.
func TestBrokerNumbers(t *testing.T) {
	u := brokerWithResolver(t, func(q *work.Lookup) *work.LookupResult {
		switch {
		case q.Name == "alice" && !q.Group:
			return &work.LookupResult{ID: q.ID, Available: true, Number: 20001}
		case q.Name == "lab" && q.Group:
			return &work.LookupResult{ID: q.ID, Available: true, Number: 7}
		case q.Name == "slow":
			return &work.LookupResult{ID: q.ID}
		case q.Name == "" || len(q.Name) > 255:
			t.Errorf("the resolver was asked for %q", q.Name)
		}
		return &work.LookupResult{ID: q.ID, Available: true, Number: ipc.NoID}
	}).Users()
	ctx := context.Background()
	if id, err := u.UserID(ctx, "alice"); id != 20001 || err != nil {
		t.Errorf("alice: %d, %v", id, err)
	}
	if id, err := u.GroupID(ctx, "lab"); id != 7 || err != nil {
		t.Errorf("lab: %d, %v", id, err)
	}
	for _, name := range []string{"nosuch", "", strings.Repeat("x", 256)} {
		if _, err := u.UserID(ctx, name); errs.KindOf(err) != errs.NotFound {
			t.Errorf("%.10q: %v", name, err)
		}
	}
	if _, err := u.UserID(ctx, "slow"); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("a directory that does not answer: %v", err)
	}
	if _, err := u.byName.Acquire(ctx, "another user"); err != nil { // and looks up a name
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := u.UserID(cancelled, "alice"); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("a client that has gone: %v", err)
	}
}

// TestOwnName checks that the name of the worker's user is looked up when it is
// first needed. If a look-up fails, the next use of the name must repeat it.
func TestOwnName(t *testing.T) {
	var lookups atomic.Int32
	name := brokerWithResolver(t, func(q *work.Lookup) *work.LookupResult {
		if lookups.Add(1) == 1 {
			return &work.LookupResult{ID: q.ID}
		}
		return &work.LookupResult{ID: q.ID, Available: true, Name: "alice"}
	}).Users().OwnName(7)
	for i, want := range []string{"", "alice", "alice"} {
		if got := name(); got != want {
			t.Errorf("question %d: %q, want %q", i, got, want)
		}
	}
	if n := lookups.Load(); n != 2 {
		t.Errorf("asked %d times", n)
	}
}
