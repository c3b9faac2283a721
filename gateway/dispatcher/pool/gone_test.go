package pool

import (
	"net"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/dispatcher/admission"
	"schedrestd/internal/sockdiag"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// TestGoneCaller checks that a worker is not replaced because of a client that
// has left during a change that waits for the accounting daemon. The test's pool
// lets no connection give up its slot, so the slot is lent to others.
func TestGoneCaller(t *testing.T) {
	for _, tt := range []struct {
		name     string
		stage    work.Stage
		gone     time.Duration
		replaced bool
	}{
		{"during a change", work.Calling, 2 * time.Hour, false},
		{"during a change, longer than a transaction may take", work.Calling, 5 * time.Hour, true},
		{"during another request", work.Answering, 2 * time.Hour, true},
		{"a moment ago", work.Idle, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newTestPool(t, func(p *testPool) {
				p.Workers = 1
				p.Setup.Limits.Accounting = time.Hour
			})
			w := p.next()
			must(t, <-p.started)
			p.connect()
			id, _ := p.takeConn(w)
			p.sync(func() {
				c := p.workers[w.Number].held[id]
				p.Slots.Progress(&c.Conn, tt.stage)
				c.goneSince = time.Now().Add(-tt.gone)
				p.checkGone()
				if got := p.workers[w.Number].replaced; got != tt.replaced {
					t.Errorf("replaced: %v", got)
				}
			})
		})
	}
}

// TestSlotsOfAnsweringWorker checks that the slots of a worker that was silent are lent
// only until it answers, except those of connections that are gone.
func TestSlotsOfAnsweringWorker(t *testing.T) {
	p, w := servingOne(t)
	p.connect()
	p.connect()
	first, _ := p.takeConn(w)
	p.takeConn(w)
	p.sync(func() {
		held := p.workers[w.Number].held
		held[first].goneSince = time.Now()
		for _, c := range held {
			p.Slots.Unresponsive([]*admission.Conn{&c.Conn})
		}
		p.workers[w.Number].liveness.Check(p.workers[w.Number].Process, hour)
	})
	m, err := w.Channel.Receive()
	must(t, err)
	must(t, w.Channel.Send(&ipc.Pong{Number: m.Message.(*ipc.Ping).Number}))
	await(t, "one slot is lent", func() (ok bool) {
		p.sync(func() { ok = p.Slots.Lent() == 1 })
		return ok
	})
}

// TestFinds checks that the kernel is asked only once about the TCP connections
// to an address of a listener, but about each one from a link-local address, and
// about each UNIX connection.
func TestFinds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer client.Close()
	server, err := l.Accept()
	must(t, err)
	defer server.Close()
	file, err := server.(*net.TCPConn).File()
	must(t, err)
	defer file.Close()
	open, err := sockdiag.IdentifyTCP(int(file.Fd()), server.RemoteAddr().(*net.TCPAddr).AddrPort())
	must(t, err)
	diag, err := sockdiag.Open(unix.NETLINK_SOCK_DIAG)
	must(t, err)
	defer unix.Close(diag)
	unknown, err := sockdiag.IdentifyTCP(int(file.Fd()), netip.MustParseAddrPort("192.0.2.1:1"))
	must(t, err)
	linkLocal, err := sockdiag.IdentifyTCP(int(file.Fd()), netip.MustParseAddrPort("[fe80::1]:1"))
	must(t, err)
	other, err := net.Listen("tcp", "127.0.0.2:0")
	must(t, err)
	defer other.Close()
	raw, err := other.(*net.TCPListener).File()
	must(t, err)
	defer raw.Close()
	elsewhere, err := sockdiag.IdentifyTCP(int(raw.Fd()), netip.MustParseAddrPort("192.0.2.1:1"))
	must(t, err)

	s := &Slots{kernel: sockdiag.NewSocket(diag), found: map[tcpKind]bool{}}
	for _, tt := range []struct {
		name, listener string
		network        ipc.Network
		socket         *sockdiag.Connection
		want           bool
	}{
		{"no identity", "a", ipc.TCP, nil, false},
		{"not found", "a", ipc.TCP, &unknown, false},
		{"found", "a", ipc.TCP, &open, true},
		{"another of the same listener", "a", ipc.TCP, &unknown, true},
		{"from a link-local address", "a", ipc.TCP, &linkLocal, false},
		{"to another address", "a", ipc.TCP, &elsewhere, false},
		{"another listener", "b", ipc.TCP, &unknown, false},
		{"UNIX, found", "c", ipc.Unix, &open, true},
		{"UNIX, not found", "c", ipc.Unix, &unknown, false},
	} {
		c := &Connection{Connection: ipc.Connection{Listener: tt.listener, Network: tt.network}, Socket: tt.socket}
		if got := s.finds(c); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	for i := range maxKinds {
		s.found[tcpKind{listener: strconv.Itoa(i)}] = true
	}
	c := &Connection{Connection: ipc.Connection{Listener: "d", Network: ipc.TCP}, Socket: &open}
	if !s.finds(c) || len(s.found) > maxKinds {
		t.Errorf("%d results are remembered", len(s.found))
	}
}
