package privsep

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"schedrestd/gateway/dispatcher"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/demo/thread"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// TestProxyIsNoSource checks that a trusted proxy may exceed the limit on
// connections of one user or address (PerSource). The limit must still apply to
// an address that is only exempt from penalties.
func TestProxyIsNoSource(t *testing.T) {
	t.Parallel()
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	g := serve(t, plainUser(t), testConfig{Connections: 6, PerSource: 2, Setup: packed(work.Setup{Admission: work.Admission{Proxies: loopback}})})
	g.occupy(t, 4)
	if got := g.mustGet("/pid"); got == "" {
		t.Error("no answer")
	}
	g = serve(t, plainUser(t), testConfig{Argv: argv{ipc.Dispatcher: dispatcherArgs(dispatcher.Limits{WaitLimit: hangLimit})}, Connections: 6, PerSource: 2, Setup: packed(work.Setup{Admission: work.Admission{Exempt: loopback}})})
	g.occupy(t, 2)
	if status, _, err := answer(g.dial(t, request)); status != http.StatusServiceUnavailable {
		t.Errorf("an exempt address that has more than its share: %d %v", status, err)
	}
}

// dialTCPAs connects to g over loopback as another user.
func (g *gateway) dialTCPAs(t *testing.T, uid uint32) (c net.Conn) {
	t.Helper()
	must(t, thread.RunAs(uid, uid, func() (err error) {
		c, err = net.Dial("tcp", g.addr)
		return err
	}))
	t.Cleanup(func() { c.Close() })
	return c
}

// TestOneSourceLeavesSlots checks that one user can't keep other users from
// being served. The user's requests hold every slot, and further connections of
// this user, from several loopback addresses, wait for slots. When a slot
// becomes free, it must go to another user, who connected later. The first
// user's requests in progress must not be interrupted.
func TestOneSourceLeavesSlots(t *testing.T) {
	t.Parallel()
	needRoot(t) // only root can act as several users
	g := serve(t, plainUser(t), testConfig{Connections: 4})
	conns := g.occupy(t, 4)
	const endless = "GET /wait?ms=3600000 HTTP/1.1\r\nHost: x\r\n\r\n"
	for i := range 10 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(i+1))}}
		c, err := d.Dial("tcp", g.addr)
		must(t, err)
		defer c.Close()
		fmt.Fprint(c, endless)
	}
	otherConn := g.dialTCPAs(t, 31002)
	fmt.Fprint(otherConn, request)
	await(t, "all of them wait", func() bool {
		must(t, unix.Kill(g.cmd.Process.Pid, unix.SIGUSR1))
		g.mu.Lock()
		defer g.mu.Unlock()
		return slices.ContainsFunc(g.records, func(r map[string]any) bool { return strings.Contains(fmt.Sprint(r["connections"]), " waiting:11") })
	})
	for _, c := range conns[1:] {
		stillOpen(t, c, "one that is being answered")
	}
	conns[0].Close()
	if status, _, err := answer(otherConn); status != http.StatusOK {
		t.Errorf("another user: %d %v", status, err)
	}
}

// TestParking checks what happens if a source, such as a user, has the maximum
// number of connections and opens another one. The new connection must wait
// until another connection of this source ends. In the meantime, it must hold
// no slot, and other sources must be served.
func TestParking(t *testing.T) {
	t.Parallel()
	needRoot(t) // only root can act as several users
	g := serve(t, plainUser(t), testConfig{Connections: 6, PerSource: 2})
	conns := g.occupy(t, 2)
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
	askAsOther := func() (string, error) { // a user without a name
		c := g.dialTCPAs(t, 31002)
		defer c.Close()
		_, body, err := ask(c, "/pid")
		return body, err
	}
	for range 20 {
		if _, err := askAsOther(); err != nil {
			t.Fatalf("another source: %v", err)
		}
	}
	select {
	case err := <-answered:
		t.Fatalf("a third connection of one source is served beside two: %v", err)
	default:
	}
	conns[0].Close()
	if err := <-answered; err != nil {
		t.Errorf("the one that was parked: %v", err)
	}
}

// TestOwnSourceIsReclaimed checks what happens if a source, such as a user, has the
// maximum number of connections and opens another one. The gateway must close
// an idle connection of this source, even if slots are free for other sources.
func TestOwnSourceIsReclaimed(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{Connections: 10, PerSource: 1})
	for range 3 {
		c := g.dial(t, request)
		if status, _, err := answer(c); status != http.StatusOK {
			t.Errorf("%d %v", status, err)
		}
	}
}

// TestParkingHasAnEnd checks that a waiting connection is answered with status
// 503 if it has waited too long. Once the source's slot is free again, requests
// of this source must be served.
func TestParkingHasAnEnd(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{Argv: argv{ipc.Dispatcher: dispatcherArgs(dispatcher.Limits{WaitLimit: hangLimit})}, Connections: 4, PerSource: 1})
	conns := g.occupy(t, 1)
	var list []net.Conn
	for range 5 {
		list = append(list, g.dial(t, request))
	}
	for _, c := range list {
		if status, _, err := answer(c); status != http.StatusServiceUnavailable {
			t.Errorf("over the bound: %d %v", status, err)
		}
	}
	g.awaitReason("connection refused", "none of its connections ended in time")
	conns[0].Close()
	for range 10 {
		g.mustGet("/pid")
	}
}

// TestUserWhoStopsTheirWorker checks that other users are served even if a user
// stops their own worker and opens many connections.
func TestUserWhoStopsTheirWorker(t *testing.T) {
	t.Parallel()
	_, socket := serveBecomeUser(t, testConfig{Argv: argv{ipc.Dispatcher: dispatcherArgs(dispatcher.Limits{WaitLimit: time.Hour})}, Connections: 4, Silence: time.Hour}) // with these timeouts, only the limit on connections can help the other user
	_, _, body := askAs(t, socket, 31001, 31101, "/pid")
	pid := pidOf(t, body)
	suspend(t, pid)
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

// TestStoppedWorkersKeepNoSlots checks that two users who hold all slots and
// stop their own workers can't keep a third user from being served. The third
// user must not have to wait until the stopped workers are killed. The
// connections of these workers must still count against the first two users'
// limits.
func TestStoppedWorkersKeepNoSlots(t *testing.T) {
	t.Parallel()
	_, socket := serveBecomeUser(t, testConfig{Argv: argv{ipc.Dispatcher: dispatcherArgs(dispatcher.Limits{WaitLimit: time.Hour})}, Connections: 4, Silence: time.Hour})
	dial := func(uid uint32) net.Conn {
		c, err := thread.DialAs(uid, uid, socket)
		must(t, err)
		t.Cleanup(func() { c.Close() })
		_, err = fmt.Fprint(c, request)
		must(t, err)
		return c
	}
	var again []net.Conn
	for _, uid := range []uint32{31001, 31002} {
		one, other := dial(uid), dial(uid)
		var body string
		for _, c := range []net.Conn{one, other} {
			var err error
			_, body, err = answer(c)
			must(t, err)
		}
		pid := pidOf(t, body)
		suspend(t, pid)
		defer unix.Kill(pid, unix.SIGCONT)
		again = append(again, dial(uid))
	}
	for range 3 {
		if status, _, err := answer(dial(31003)); status != http.StatusOK {
			t.Errorf("a third user: %d %v", status, err)
		}
	}
	for _, c := range again {
		stillOpen(t, c, "a connection over its user's limit")
	}
}
