package integration

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/demo/thread"
)

// rest_auth/local: over a UNIX socket the kernel says who asks, and only the uid that the gateway
// serves as is let in.
func TestLocal(t *testing.T) {
	u := someUser(t)
	var socket string
	l := newLab(t, func(l *lab) {
		// The worker asks the controller with its own uid as the credential.
		must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755))
		socket = filepath.Join(l.Dir, "run", "rest.sock")
		if os.Geteuid() == 0 {
			must(t, os.Mkdir(filepath.Join(l.Dir, "rest"), 0o755))
			socket = filepath.Join(l.Dir, "rest", "sock")
			l.restd.Args = []string{"-f", l.Conf(), "-u", u.name, "-g", strconv.Itoa(int(u.gid)), l.restd.Args[len(l.restd.Args)-1]}
		}
		l.restd.Args = append(l.restd.Args, "unix:"+socket)
	})
	over := func(uid uint32) *http.Client {
		return &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext:       func(context.Context, string, string) (net.Conn, error) { return thread.DialAs(uid, u.gid, socket) },
		}}
	}
	ask := func(t *testing.T, uid uint32, status int, headers ...string) {
		t.Helper()
		headers = append([]string{"X-SCHED-USER-TOKEN:"}, headers...)
		a, err := l.try(over(uid), "GET", "/sched/v0.0.43/ping", "", headers...)
		if err != nil {
			t.Fatal(err)
		}
		a.want(t, status)
	}
	t.Run("own uid", func(t *testing.T) { ask(t, u.uid, 200) })
	t.Run("own uid and own name", func(t *testing.T) { ask(t, u.uid, 200, "X-SCHED-USER-NAME: "+u.name) })
	t.Run("another's name", func(t *testing.T) { ask(t, u.uid, 401, "X-SCHED-USER-NAME: somebody-else") })
	t.Run("a bad token does not fall back", func(t *testing.T) { ask(t, u.uid, 401, "X-SCHED-USER-TOKEN: x.y.z") })
	t.Run("over TCP", func(t *testing.T) {
		l.ask("GET", "/sched/v0.0.43/ping", "", "X-SCHED-USER-TOKEN:").want(t, 401)
	})
	t.Run("a token over the socket", func(t *testing.T) {
		ask(t, u.uid, 200, "X-SCHED-USER-TOKEN: "+l.userToken)
	})
	t.Run("another uid", func(t *testing.T) {
		needRoot(t)
		ask(t, u.uid+1, 401)
		ask(t, u.uid+1, 200, "X-SCHED-USER-TOKEN: "+l.userToken)
	})
}

// TestOrdinaryBeforeRoots: a gateway that a user starts for himself asks root's controller over its socket, in the name of that user, though its
// workers, in a user namespace, can't tell root from any other stranger. Another one's socket in its place is believed no more than anywhere.
func TestOrdinaryBeforeRoots(t *testing.T) {
	u, other := twoUsers(t)
	l := newLab(t, func(l *lab) { must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755)) })
	must(t, os.Chmod(filepath.Dir(l.Conf()), 0o755))
	must(t, os.Chmod(l.Conf(), 0o644))
	home := filepath.Join(l.Dir, "home")
	must(t, os.Mkdir(home, 0o755))
	must(t, os.Chown(home, int(u.uid), int(u.gid)))
	socket := filepath.Join(home, "rest")
	p := l.restd
	p.Credential = &syscall.Credential{Uid: u.uid, Gid: u.gid, Groups: []uint32{}}
	p.Args = []string{"-f", l.Conf(), "-a", "rest_auth/local", "unix:" + socket}
	l.gateOf(t, p, nil)
	for range 3 {
		a, err := l.by(u.uid, u.gid, socket, "GET", "/sched/v0.0.43/ping", "")
		must(t, err)
		a.want(t, http.StatusOK)
	}

	must(t, os.Rename(l.Socket(), l.Socket()+".before"))
	imposter, err := net.ListenUnix("unix", &net.UnixAddr{Name: l.Socket()})
	must(t, err)
	defer imposter.Close()
	must(t, os.Chmod(l.Socket(), 0o777))
	must(t, os.Chown(l.Socket(), int(other.uid), int(other.gid)))
	must(t, listenAs(imposter, other))
	a, err := l.by(u.uid, u.gid, socket, "GET", "/sched/v0.0.43/ping", "")
	must(t, err)
	a.want(t, http.StatusServiceUnavailable)
	must(t, imposter.SetDeadline(time.Now().Add(100*time.Millisecond))) // the answer has come: so has each connection
	for {
		c, err := imposter.Accept()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		must(t, err)
		if said, err := io.ReadAll(c); err != nil || len(said) > 0 {
			t.Errorf("an imposter was told %q, %v", said, err)
		}
		c.Close()
	}
}

// listenAs has the kernel take u for who serves l.
func listenAs(l *net.UnixListener, u account) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	return thread.As(u.uid, u.gid, func() error {
		var listened error
		err := raw.Control(func(fd uintptr) { listened = unix.Listen(int(fd), 5) })
		return errors.Join(err, listened)
	})
}
