package privsep

import (
	"net"
	"net/http"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/demo/thread"
	"schedrestd/ipc"
)

// TestSourceOf: one machine is one source, however many addresses of its network it has.
func TestSourceOf(t *testing.T) {
	six := func(s string) unix.Sockaddr { return &unix.SockaddrInet6{Addr: netip.MustParseAddr(s).As16()} }
	four := func(s string) unix.Sockaddr { return &unix.SockaddrInet4{Addr: netip.MustParseAddr(s).As4()} }
	for _, tt := range []struct {
		name string
		a, b unix.Sockaddr
		same bool
	}{
		{"one address", four("192.0.2.1"), four("192.0.2.1"), true},
		{"two addresses", four("192.0.2.1"), four("192.0.2.2"), false},
		{"mapped into IPv6", four("192.0.2.1"), six("::ffff:192.0.2.1"), true},
		{"two mapped ones", six("::ffff:192.0.2.1"), six("::ffff:192.0.2.2"), false},
		{"one /64", six("2001:db8:0:1::1"), six("2001:db8:0:1:ffff::2"), true},
		{"two networks", six("2001:db8:0:1::1"), six("2001:db8:0:2::1"), false},
	} {
		if got := sourceOf(tt.a, ipc.Connection{}) == sourceOf(tt.b, ipc.Connection{}); got != tt.same {
			t.Errorf("%s: the same source: %v", tt.name, got)
		}
	}
	local := func(uid uint32) source { return sourceOf(&unix.SockaddrUnix{}, ipc.Connection{UID: uid}) }
	if one := local(1); one == local(2) || one != local(1) || local(0) == sourceOf(four("0.0.0.0"), ipc.Connection{}) {
		t.Error("uids are taken for each other, or for an address")
	}
}

// TestProxyIsNoSource: all who come through a trusted proxy are not held to what one source may have. Who is only
// exempt from penalties is.
func TestProxyIsNoSource(t *testing.T) {
	here := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	g := serve(t, plain(t), Config{Connections: 6, PerSource: 2, Setup: ipc.Setup{Admission: ipc.Admission{Proxies: here}}})
	g.occupy(t, 4)
	if got := g.mustGet("/pid"); got == "" {
		t.Error("no answer")
	}
	g = serve(t, plain(t), Config{Connections: 6, PerSource: 2, HandLimit: 300 * time.Millisecond, Setup: ipc.Setup{Admission: ipc.Admission{Exempt: here}}})
	g.occupy(t, 2)
	if status, _, err := answer(g.dial(t, request)); status != http.StatusServiceUnavailable {
		t.Errorf("an exempt address that has more than its share: %d %v", status, err)
	}
}

// TestParking: who has as many connections as one source may waits, without a slot and without
// keeping others out, until one of his ends.
func TestParking(t *testing.T) {
	g := serve(t, plain(t), Config{Connections: 6, PerSource: 2})
	held := g.occupy(t, 2)
	third, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	answered := make(chan error, 1)
	go func() {
		_, _, err := ask(third, "/pid")
		answered <- err
	}()
	other := func() (string, error) { // 127.0.0.2 is somebody else
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		c, err := d.Dial("tcp", g.addr)
		if err != nil {
			return "", err
		}
		defer c.Close()
		_, body, err := ask(c, "/pid")
		return body, err
	}
	for range 20 {
		if _, err := other(); err != nil {
			t.Fatalf("another source: %v", err)
		}
	}
	select {
	case err := <-answered:
		t.Fatalf("a third connection of one source is served beside two: %v", err)
	default:
	}
	held[0].Close()
	if err := <-answered; err != nil {
		t.Errorf("the one that was parked: %v", err)
	}
}

// TestOwnSourceGivesWay: with slots enough for others, who comes again ends what he has at rest.
func TestOwnSourceGivesWay(t *testing.T) {
	g := serve(t, plain(t), Config{Connections: 10, PerSource: 1})
	for range 3 {
		c := g.dial(t, request)
		if status, _, err := answer(c); status != http.StatusOK {
			t.Errorf("%d %v", status, err)
		}
	}
}

// TestParkingHasAnEnd: who is parked too long, or finds no room to park, is told so, and all
// of it leaves no trace in the counts.
func TestParkingHasAnEnd(t *testing.T) {
	g := serve(t, plain(t), Config{Connections: 4, PerSource: 1, HandLimit: 300 * time.Millisecond})
	held := g.occupy(t, 1)
	var list []net.Conn
	for range 5 { // two can be parked, three can't
		list = append(list, g.dial(t, request))
	}
	for _, c := range list {
		if status, _, err := answer(c); status != http.StatusServiceUnavailable {
			t.Errorf("over the bound: %d %v", status, err)
		}
	}
	g.because("connection is closed unserved", "too many connections of its source wait")
	g.because("connection is closed unserved", "none ended within")
	held[0].Close()
	for range 10 {
		g.mustGet("/pid")
	}
}

// TestUserWhoStopsHisWorker: whatever he does to his own worker, with as many connections as he likes,
// another user is served.
func TestUserWhoStopsHisWorker(t *testing.T) {
	_, socket := becoming(t, Config{Connections: 4, Silence: time.Hour, HandLimit: time.Hour}) // nothing but the bound helps
	_, _, body := askAs(t, socket, 31001, 31101, "/pid")
	pid := pidOf(t, body)
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer unix.Kill(pid, unix.SIGCONT)
	for range 8 {
		c, err := thread.DialAs(31001, 31101, socket)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if _, status, _ := askAs(t, socket, 31002, 31102, "/pid"); status != http.StatusOK {
		t.Errorf("another user: %d", status)
	}
}
