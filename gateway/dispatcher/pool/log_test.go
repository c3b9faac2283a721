package pool

import (
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/dispatcher/admission"
	"schedrestd/gateway/dispatcher/process"
	"schedrestd/ipc"
)

// TestDropsAreLimited checks that the disk does not fill with log lines if many
// clients are turned away.
func TestDropsAreLimited(t *testing.T) {
	log := new(syncBuffer)
	s := running(t, Options{Connections: 1, Log: slog.New(slog.NewTextHandler(log, nil))}).Slots
	for range 2000 {
		c, client := accepted(t, s)
		s.sync(func() { s.Drop(c, Unavailable, "of this test") })
		client.Close()
	}
	if n := strings.Count(log.String(), "\n"); n < 50 || n > 1000 || s.counts.turnedAway() != 2000 {
		t.Errorf("%d lines about %d events", n, s.counts.turnedAway())
	}
}

// TestRoutineIsLimited checks that the log lines about routine events of
// workers are also limited, because users can cause any number of such events.
func TestRoutineIsLimited(t *testing.T) {
	p, log := idle(t, testTimeout)
	p.Lazy = true
	for range 1000 {
		p.logRoutine("worker ready")
	}
	if n := strings.Count(log.String(), "worker ready"); n < 50 || n > 500 {
		t.Errorf("%d lines", n)
	}
}

// TestAlarmsAreNotLimited checks that users can't suppress an alarm by first
// ending many of their own workers.
func TestAlarmsAreNotLimited(t *testing.T) {
	p, log := idle(t, testTimeout)
	p.Lazy = true
	for range 1000 {
		p.logFailure(slog.LevelError, "worker exited unexpectedly")
		p.alarm(process.WorkerViolation)
	}
	if n := strings.Count(log.String(), process.WorkerViolation); n != 1000 {
		t.Errorf("%d of 1000 alarms are logged", n)
	}
}

// TestExemption checks that the hint in the log names the right setting for
// each client.
func TestExemption(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1:700": "SCHEDRESTD_EXEMPT=192.0.2.1", "[2001:db8::1]:700": "SCHEDRESTD_EXEMPT=2001:db8::/64",
		"127.0.0.2:700": "SCHEDRESTD_EXEMPT=127.0.0.0/8,::1", "[::1]:700": "SCHEDRESTD_EXEMPT=127.0.0.0/8,::1", "": "SCHEDRESTD_TRUSTED_PROXIES=unix:1000",
	} {
		c := &Connection{Connection: ipc.Connection{Addr: addr, UID: 1000}}
		if at, err := netip.ParseAddrPort(addr); err == nil {
			c.Source = admission.Address(at.Addr())
		}
		if got := c.exemption(); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s", addr, got)
		}
	}
}

// slowClosingSocket returns a TCP socket that takes a long time to close,
// because its peer does not read the data that was sent.
func slowClosingSocket(t *testing.T) int {
	t.Helper()
	l, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(l) })
	must(t, unix.Bind(l, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, unix.Listen(l, 1))
	at, err := unix.Getsockname(l)
	must(t, err)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	must(t, unix.Connect(fd, at))
	peer, _, err := unix.Accept(l)
	must(t, err)
	t.Cleanup(func() { unix.Close(peer) })
	must(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 4096))
	must(t, unix.SetNonblock(fd, true))
	for err == nil {
		_, err = unix.Write(fd, make([]byte, 1<<16))
	}
	if err != unix.EAGAIN {
		t.Fatal(err)
	}
	must(t, unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 3600}))
	return fd
}

// TestLingeringClients checks that refused clients do not delay the closing of
// other connections. Each refused client has sent a descriptor of a socket that
// takes a long time to close.
func TestLingeringClients(t *testing.T) {
	s := running(t, Options{Connections: 1, Log: slog.New(slog.DiscardHandler)}).Slots
	var clients []*os.File
	for range 80 {
		c, client := accepted(t, s)
		fd := slowClosingSocket(t)
		must(t, unix.Sendmsg(int(client.Fd()), []byte("G"), unix.UnixRights(fd), nil, 0))
		unix.Close(fd)
		clients = append(clients, client)
		s.sync(func() { s.Drop(c, tooMany, "so") })
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, client := range clients {
			io.Copy(io.Discard, client)
		}
	}()
	select {
	case <-done:
	case <-time.After(testTimeout):
		t.Error("connections are not closed")
	}
}
