package dial

import (
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/internal/rate"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/security"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// channelTo returns both ends of a channel to a worker that is ready.
func channelTo(t *testing.T) (parent, worker *ipc.Channel) {
	t.Helper()
	parent, fd, err := ipc.Pair(ipc.Managers, ipc.Worker)
	must(t, err)
	t.Cleanup(func() { parent.Close() })
	worker, err = ipc.Open(fd, ipc.Worker, ipc.Managers)
	must(t, err)
	t.Cleanup(func() { worker.Close() })
	pass := func(from, to *ipc.Channel, m ipc.Message) {
		t.Helper()
		must(t, from.Send(m))
		_, err := to.Receive()
		must(t, err)
	}
	pass(parent, worker, &ipc.Setup{})
	pass(parent, worker, &ipc.Attributes{})
	pass(worker, parent, &ipc.Ready{})
	return parent, worker
}

// dialer returns a Dialer for the daemons of setup.
func dialer(setup *work.Setup, channel *ipc.Channel) *Dialer {
	return New(Options{Setup: setup, Counts: new(Counters), Burst: 4000, Rate: 5000}, channel)
}

// TestOpen checks the descriptor that a worker gets for an address. For a TCP
// address, the descriptor must be a socket that is connecting. For a UNIX
// address, it must refer to the socket's inode, and nothing must have connected
// to the socket.
func TestOpen(t *testing.T) {
	d := dialer(&work.Setup{}, nil)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer tcp.Close()
	c, err := d.open(work.Address{Network: "tcp", Address: tcp.Addr().String()})
	must(t, err)
	defer c.close()
	accepted, err := tcp.Accept()
	must(t, err)
	defer accepted.Close()
	if sa, err := unix.Getpeername(c.fd); err != nil || c.owner != ipc.NoID || c.server != uint32(os.Geteuid()) {
		t.Errorf("%v, %v, owner %d, server %d", sa, err, c.owner, c.server)
	}

	dir := sockettest.Dir(t)
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	must(t, err)
	defer l.Close()
	owner := uint32(os.Geteuid())
	if owner == 0 {
		owner = 31234
		must(t, os.Chown(path, int(owner), -1))
	}
	for foreign, server := range map[bool]uint32{false: ipc.NoID, true: owner} {
		d.o.OwnUserns = foreign
		u, err := d.open(work.Address{Network: "unix", Address: path})
		must(t, err)
		defer u.close()
		if flags, err := unix.FcntlInt(uintptr(u.fd), unix.F_GETFL, 0); err != nil || flags&unix.O_PATH == 0 || u.owner != uint32(os.Getuid()) || u.server != server {
			t.Errorf("flags %#x, %v, owner %d, server %d, in a user namespace %t", flags, err, u.owner, u.server, foreign)
		}
	}
	must(t, l.SetDeadline(time.Now().Add(20*time.Millisecond)))
	if c, err := l.Accept(); err == nil {
		c.Close()
		t.Error("the parent has connected to a UNIX socket")
	}

	file := filepath.Join(dir, "f")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, tt := range []struct {
		network, address string
		want             unix.Errno
	}{
		{"unix", file, unix.ENOTSOCK},
		{"unix", dir + "/none", unix.ENOENT},
		{"tcp", "a.name:80", unix.EADDRNOTAVAIL},
	} {
		c, err := d.open(work.Address{Network: tt.network, Address: tt.address})
		if err == nil {
			c.close()
		}
		if err == nil || errnoOf(err) != tt.want {
			t.Errorf("%s %s: %v, want %v", tt.network, tt.address, err, tt.want)
		}
	}
}

// TestNotConnected checks the error for a daemon on this machine that does not
// accept a connection. The worker tries again after EAGAIN, but not after
// ECONNREFUSED, so that a client need not wait for a daemon that is down.
func TestNotConnected(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	closed.Close()
	full, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	defer unix.Close(full)
	must(t, unix.Bind(full, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, unix.Listen(full, 0))
	at, err := unix.Getsockname(full)
	must(t, err)
	d := dialer(&work.Setup{}, nil)
	for _, tt := range []struct {
		name, address string
		passing       error // may come first: nil while the queue has space, EAGAIN while a busy kernel has not refused yet
		want          error
	}{
		{"no process listens", closed.Addr().String(), unix.EAGAIN, unix.ECONNREFUSED},
		{"the queue is full", fmt.Sprintf("127.0.0.1:%d", at.(*unix.SockaddrInet4).Port), nil, unix.EAGAIN},
	} {
		err := tt.passing
		for until := time.Now().Add(30 * time.Second); err == tt.passing && time.Now().Before(until); {
			var c conn
			if c, err = d.open(work.Address{Network: "tcp", Address: tt.address}); err == nil {
				defer c.close()
			}
		}
		if err != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
	}
}

// TestAddresses checks that a worker can request only configured addresses.
func TestAddresses(t *testing.T) {
	setup := &work.Setup{Controllers: []work.Address{{Network: "tcp", Address: "c"}}, Munge: work.Munge{Socket: "m"}, Sack: []string{"s", "t"}}
	d := dialer(setup, nil)
	for _, tt := range []struct {
		upstream work.Upstream
		index    uint8
		want     string // "": the request must be refused
	}{
		{work.UpstreamController, 0, "c"}, {work.UpstreamController, 1, ""}, {work.UpstreamController, 255, ""}, {work.UpstreamAccounting, 0, ""},
		{work.UpstreamSocket, 0, ""}, {work.UpstreamMunge, 0, "m"}, {work.UpstreamMunge, 1, ""}, {work.UpstreamAccountingMunge, 0, ""},
		{work.UpstreamSack, 0, "s"}, {work.UpstreamSack, 1, "t"}, {work.UpstreamSack, 2, ""},
	} {
		a, err := d.address(tt.upstream, tt.index)
		if a.Address != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("upstream %d, index %d: %q, %v", tt.upstream, tt.index, a.Address, err)
		}
	}
}

// machines creates two network namespaces that are connected like two machines,
// and returns their names. The first namespace has the address 192.0.2.1, and
// the second has 192.0.2.2.
func machines(t *testing.T) (local, remote string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can make network namespaces")
	}
	local, remote = fmt.Sprintf("test-%d-here", os.Getpid()), fmt.Sprintf("test-%d-there", os.Getpid())
	ip := func(line string) {
		t.Helper()
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			t.Skipf("ip %s: %v: %s", line, err, out)
		}
	}
	for _, name := range []string{local, remote} {
		ip("netns add " + name)
		t.Cleanup(func() { exec.Command("ip", "netns", "del", name).Run() })
	}
	ip("-n " + local + " link add veth0 type veth peer name veth0 netns " + remote)
	for i, name := range []string{local, remote} {
		ip(fmt.Sprintf("-n %s address add 192.0.2.%d/24 dev veth0", name, i+1))
		ip("-n " + name + " link set veth0 up")
		ip("-n " + name + " link set lo up")
	}
	return local, remote
}

// enter moves the thread of the test to a network namespace. The test's
// goroutine stays on that thread.
func enter(t *testing.T, name string) {
	t.Helper()
	runtime.LockOSThread() // so the thread exits with the test
	f, err := os.Open("/run/netns/" + name)
	must(t, err)
	defer f.Close()
	must(t, unix.Setns(int(f.Fd()), unix.CLONE_NEWNET))
}

// TestSpares checks spare sockets for a daemon on another machine. They must
// connect to that daemon, but only when they are written to. A worker that does
// not read its channel must get only a few spare sockets. A worker must get
// none for a UNIX socket, for an invalid address, or for an address of this
// machine.
func TestSpares(t *testing.T) {
	local, remote := machines(t)
	enter(t, remote)
	l, err := net.Listen("tcp", "192.0.2.2:0")
	must(t, err)
	enter(t, local)
	defer l.Close()
	parent, worker := channelTo(t)
	setup := &work.Setup{Controllers: []work.Address{{Network: "tcp", Address: l.Addr().String()}, {Network: "tcp", Address: "a.name:1"}},
		Accounting: []work.Address{{Network: "tcp", Address: "127.0.0.1:1"}, {Network: "tcp", Address: "192.0.2.1:1"}},
		Munge:      work.Munge{Socket: "/nowhere"}}
	d := dialer(setup, parent)
	for _, batch := range []*work.DialBatch{{Upstream: work.UpstreamMunge}, {Upstream: work.UpstreamController, Index: 1}, {Upstream: work.UpstreamAccounting}, {Upstream: work.UpstreamAccounting, Index: 1}} {
		if handled, err := d.Handle(batch); !handled || err != nil || d.o.Counts.Prepared.Load() != 0 {
			t.Errorf("%v: %t, %v, %d spares", batch, handled, err, d.o.Counts.Prepared.Load())
		}
	}
	if _, err := d.Handle(&work.DialBatch{Index: 2}); err == nil {
		t.Error("spare sockets for a daemon that is not configured")
	}
	_, err = d.Handle(&work.DialBatch{})
	must(t, err)
	r, err := worker.Receive()
	must(t, err)
	defer closeFDs(r.FDs)
	if m, ok := r.Message.(*work.DialedBatch); !ok || m.Upstream != work.UpstreamController || m.Index != 0 || len(r.FDs) != ipc.DialBatchSize {
		t.Fatalf("%#v with %d descriptors", r.Message, len(r.FDs))
	}
	must(t, l.(*net.TCPListener).SetDeadline(time.Now().Add(20*time.Millisecond)))
	if c, err := l.Accept(); err == nil {
		c.Close()
		t.Fatal("a socket has connected before its first write")
	}
	must(t, l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute)))
	for _, fd := range r.FDs {
		if _, err := unix.Write(fd, nil); err != nil && err != unix.EINPROGRESS {
			t.Fatal(err)
		}
		c, err := l.Accept()
		must(t, err)
		c.Close()
	}

	for n := range 1000 { // the worker does not read
		if _, err := d.Handle(&work.DialBatch{}); err != nil {
			t.Fatal(err)
		}
		if n == 999 && d.o.Counts.Prepared.Load() > 50*ipc.DialBatchSize {
			t.Errorf("%d descriptors wait for a worker that does not read", d.o.Counts.Prepared.Load())
		}
	}
}

// TestConnectedSpares checks that spare sockets for a daemon on this machine
// are connected, and that the worker gets the daemon's uid.
func TestConnectedSpares(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	parent, worker := channelTo(t)
	d := dialer(&work.Setup{Accounting: []work.Address{{Network: "tcp", Address: l.Addr().String()}}}, parent)
	_, err = d.Handle(&work.DialBatch{Upstream: work.UpstreamAccounting, Connected: true})
	must(t, err)
	r, err := worker.Receive()
	must(t, err)
	defer closeFDs(r.FDs)
	m, ok := r.Message.(*work.ConnectedBatch)
	if !ok || m.Upstream != work.UpstreamAccounting || m.Server != uint32(os.Geteuid()) || len(r.FDs) != work.ConnectedBatchSize {
		t.Fatalf("%#v with %d descriptors", r.Message, len(r.FDs))
	}
	for range r.FDs {
		c, err := l.Accept()
		must(t, err)
		c.Close()
	}
}

// TestUnknownServer checks that a worker does not take a server on this machine for
// one on another machine if the kernel no longer knows whose it is.
func TestUnknownServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	to, err := parseTarget(l.Addr().String())
	must(t, err)
	defer to.close()
	c, err := connect(to, 0, false)
	must(t, err)
	defer c.close()
	server, err := l.Accept()
	must(t, err)
	server.Close()
	l.Close()
	if got, err := to.server(c.fd); err != nil || got != become.Overflow {
		t.Errorf("uid %d, %v; want %d", got, err, uint32(become.Overflow))
	}
}

// TestCost checks how much of a worker's quota each request costs. If no port
// is free, the request costs 100 more, because the kernel has tried all ports.
func TestCost(t *testing.T) {
	parent, _ := channelTo(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	closed.Close()
	const listening, portless, refused = 0, 1, 2
	setup := &work.Setup{Controllers: []work.Address{listening: {Network: "tcp", Address: l.Addr().String()}, portless: {Network: "tcp", Address: "a.name:1"},
		refused: {Network: "tcp", Address: closed.Addr().String()}},
		AuthSocket: "/nowhere"}
	for _, tt := range []struct {
		request ipc.Message
		cost    float64
	}{
		{&work.Dial{Index: listening}, 1},
		{&work.Dial{Upstream: work.UpstreamSocket}, 1},
		{&work.Dial{Index: portless}, 101},
		{&work.DialBatch{Index: listening, Connected: true}, work.ConnectedBatchSize},
		{&work.DialBatch{Index: refused, Connected: true}, work.ConnectedBatchSize},
		{&work.DialBatch{Index: portless}, ipc.DialBatchSize + 100},
	} {
		const many = 1000
		d := dialer(setup, parent)
		d.dials = rate.New(rate.Row{Burst: many, PerSecond: math.SmallestNonzeroFloat64}, time.Now())
		_, err := d.Handle(tt.request)
		must(t, err)
		if now := time.Now(); !d.dials.Take(now, many-tt.cost) || d.dials.Take(now, 1) {
			t.Errorf("%s %+v does not cost %v", ipc.KindOf(tt.request), tt.request, tt.cost)
		}
		d.dials.Charge(time.Now(), many)
		d.retries = rate.New(rate.Row{Burst: 1, PerSecond: math.SmallestNonzeroFloat64}, time.Now())
		for n, ends := range []bool{false, true} { // the first request beyond the quota is answered with "try again"; the second is a violation
			if _, err := d.Handle(tt.request); (err != nil) != ends {
				t.Errorf("%s %+v, %d times too often: %v", ipc.KindOf(tt.request), tt.request, n+1, err)
			}
		}
	}
}

// TestPorts checks that two workers with consecutive numbers use different
// local ports.
func TestPorts(t *testing.T) {
	first, second := Ports(PortShares), Ports(PortShares+1)
	if first == 0 {
		t.Skip("this machine's range of ports is not divided")
	}
	if first>>16 < first&0xffff || second&0xffff <= first>>16 || Ports(2*PortShares) != first {
		t.Errorf("ports %#x and %#x", first, second)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	to, err := parseTarget(l.Addr().String())
	must(t, err)
	defer to.close()
	w, err := connect(to, first, false)
	must(t, err)
	defer w.close()
	c, err := l.Accept()
	must(t, err)
	defer c.Close()
	if port := uint32(c.RemoteAddr().(*net.TCPAddr).Port); security.KernelSince(6, 3) && (port < first&0xffff || port > first>>16) {
		t.Errorf("port %d is not in the range %d to %d", port, first&0xffff, first>>16)
	}
}
