package admission

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"schedrestd/integration/harness"
)

// addAddress adds an IPv6 address to n's loopback interface.
func (n network) addAddress(t *testing.T, addr string) {
	t.Helper()
	harness.Must(t, harness.InNetwork(n.handle, func() error {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		request := struct { // struct in6_ifreq
			addr  [16]byte
			bits  uint32
			index int32
		}{netip.MustParseAddr(addr).As16(), 128, 1}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFADDR, uintptr(unsafe.Pointer(&request))); errno != 0 {
			return fmt.Errorf("give lo %s: %w", addr, errno)
		}
		return nil
	}))
}

// dialFrom returns a function that connects to address in the namespace n. The
// argument from is the client's address.
func (n network) dialFrom(from, address string) func() (net.Conn, error) {
	return func() (conn net.Conn, err error) {
		err = harness.InNetwork(n.handle, func() (err error) {
			d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
			conn, err = d.Dial("tcp", address)
			return err
		})
		return conn, err
	}
}

// TestIPv6Penalties checks that all addresses of a /64 share their penalties,
// and that the neighbouring /64 is not affected.
func TestIPv6Penalties(t *testing.T) {
	t.Parallel()
	ns := newNetwork(t, "six")
	const gateway, neighbor = "2001:db8:0:ff::1", "2001:db8:0:2::1"
	offenders := []string{"2001:db8:0:1::1", "2001:db8:0:1::2", "2001:db8:0:1:ffff:ffff:ffff:ffff"}
	for _, addr := range append(offenders, gateway, neighbor) {
		ns.addAddress(t, addr)
	}
	l := harness.NewLab(t)
	address := fmt.Sprintf("[%s]:%d", gateway, harness.FreePort(t))
	g := l.StartGateway(t, []string{"SCHEDRESTD_NETNS=" + ns.name, "SCHEDRESTD_PENALTIES=threshold:5s"}, "-a", "rest_auth/jwt", address)
	send := func(from string, headers ...string) int {
		a, err := l.TryRequest(harness.NewClient(ns.dialFrom(from, address)), "GET", "/sched/"+harness.Version+"/ping", "", headers...)
		if err != nil && strings.Contains(err.Error(), "readLoopPeekFailLocked") {
			return http.StatusTooManyRequests // the answer came before the request was sent, which net/http reports as an error
		}
		harness.Must(t, err)
		return a.Status
	}
	n := 0
	harness.Eventually(t, "the addresses are blocked", func() bool {
		n++
		return send(offenders[n%2], newGuess()) == http.StatusTooManyRequests
	})
	if n < 6 {
		t.Errorf("after %d requests", n)
	}
	if status := send(neighbor); status != http.StatusOK {
		t.Errorf("another /64: %d", status)
	}
	// On a slow machine the first block may have expired before the next
	// request. In that case, further guesses cause longer blocks.
	harness.Eventually(t, "a third address of the /64 is blocked, too", func() bool {
		return send(offenders[2]) == http.StatusTooManyRequests || send(offenders[n%2], newGuess()) == 0
	})
	if !strings.Contains(g.Logged(), "source=2001:db8:0:1::/64") {
		t.Errorf("the log:\n%s", strings.Join(g.LastLines(8), "\n"))
	}
	harness.Eventually(t, "the block expires", func() bool { return send(offenders[2]) == http.StatusOK })
}

// TestLoopbackOfIPv6 checks that the penalties of a user are the same on ::1
// and on 127.0.0.1, and do not affect other users.
func TestLoopbackOfIPv6(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	probe, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("this machine has no IPv6: %v", err)
	}
	probe.Close()
	four, six := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)), fmt.Sprintf("[::1]:%d", harness.FreePort(t))
	g := l.StartGateway(t, []string{"SCHEDRESTD_PENALTIES=threshold:5s"}, four, six)
	a, b := &limitedGateway{Gateway: g, address: six}, &limitedGateway{Gateway: g, address: four}
	fourStatus := 0 // on a slow machine the first block may be over already; each is longer than the previous one
	harness.Eventually(t, "the user is blocked on both addresses", func() bool {
		a.pingUntil(newSource(t, ownUID, false), http.StatusTooManyRequests, guessPlaceholder)
		fourStatus, _ = b.ping(newSource(t, ownUID, false))
		return fourStatus == http.StatusTooManyRequests
	})
	if !strings.Contains(a.Logged(), fmt.Sprintf("source=\"uid %d\"", ownUID)) {
		t.Errorf("the log:\n%s", strings.Join(g.LastLines(8), "\n"))
	}
	if status, _ := a.ping(newSource(t, daemonUser, false)); status != http.StatusOK {
		t.Errorf("another user on ::1: %d", status)
	}
	a.pingUntil(newSource(t, ownUID, false), http.StatusOK)
}
