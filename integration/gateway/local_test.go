package gateway

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

	"schedrestd/bundled/demo/thread"
	"schedrestd/integration/harness"
)

// TestLocal checks rest_auth/local. Over a UNIX socket the kernel identifies
// the user. From clients without a token, the gateway accepts only those with
// its own uid.
func TestLocal(t *testing.T) {
	t.Parallel()
	u := harness.OrdinaryUser(t)
	var socket string
	l := harness.NewLab(t, func(l *harness.Lab) {
		// The worker connects to the controller's socket, where its own uid is
		// the credential. The worker's user must therefore be able to enter the
		// directory of the socket.
		harness.Must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755))
		socket = filepath.Join(l.Dir, "run", "rest.sock")
		if os.Geteuid() == 0 {
			harness.Must(t, os.Mkdir(filepath.Join(l.Dir, "rest"), 0o755))
			socket = filepath.Join(l.Dir, "rest", "sock")
			l.Restd.Args = []string{"-f", l.Conf(), "-u", u.Name, "-g", strconv.Itoa(int(u.GID)), l.Restd.Args[len(l.Restd.Args)-1]}
		}
		l.Restd.Args = append(l.Restd.Args, "unix:"+socket)
	})
	clientAs := func(uid uint32) *http.Client {
		return &http.Client{Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext:       func(context.Context, string, string) (net.Conn, error) { return thread.DialAs(uid, u.GID, socket) },
		}}
	}
	send := func(t *testing.T, uid uint32, status int, headers ...string) {
		t.Helper()
		headers = append([]string{"X-SCHED-USER-TOKEN:"}, headers...)
		a, err := l.TryRequest(clientAs(uid), "GET", "/sched/v0.0.43/ping", "", headers...)
		if err != nil {
			t.Fatal(err)
		}
		a.Want(t, status)
	}
	t.Run("own uid", func(t *testing.T) { send(t, u.UID, 200) })
	t.Run("own uid and own name", func(t *testing.T) { send(t, u.UID, 200, "X-SCHED-USER-NAME: "+u.Name) })
	t.Run("another's name", func(t *testing.T) { send(t, u.UID, 401, "X-SCHED-USER-NAME: somebody-else") })
	t.Run("a bad token does not fall back", func(t *testing.T) { send(t, u.UID, 401, "X-SCHED-USER-TOKEN: x.y.z") })
	t.Run("over TCP", func(t *testing.T) {
		l.Request("GET", "/sched/v0.0.43/ping", "", "X-SCHED-USER-TOKEN:").Want(t, 401)
	})
	t.Run("a token over the socket", func(t *testing.T) {
		send(t, u.UID, 200, "X-SCHED-USER-TOKEN: "+l.OwnToken)
	})
	t.Run("another uid", func(t *testing.T) {
		harness.NeedRoot(t)
		send(t, u.UID+1, 401)
		send(t, u.UID+1, 200, "X-SCHED-USER-TOKEN: "+l.OwnToken)
	})
}

// TestOrdinaryUserAtRootController starts a gateway as an ordinary user, in
// front of a controller that runs as root. The gateway must be able to use the
// controller's socket, and the controller must identify the gateway as that
// user.
//
// The gateway's workers are in a user namespace, where root looks like any
// other unmapped user. Even so, if another user has replaced the controller's
// socket with their own, the workers must send nothing to it.
func TestOrdinaryUserAtRootController(t *testing.T) {
	t.Parallel()
	u, impostorUser := harness.TwoUsers(t)
	l := harness.NewDaemons(t, func(l *harness.Lab) { harness.Must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755)) })
	harness.Must(t, os.Chmod(filepath.Dir(l.Conf()), 0o755))
	harness.Must(t, os.Chmod(l.Conf(), 0o644))
	home := filepath.Join(l.Dir, "home")
	harness.Must(t, os.Mkdir(home, 0o755))
	harness.Must(t, os.Chown(home, int(u.UID), int(u.GID)))
	socket := filepath.Join(home, "rest")
	p := l.Restd
	p.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: []uint32{}}
	p.Args = []string{"-f", l.Conf(), "-a", "rest_auth/local", "unix:" + socket}
	l.StartGatewayPart(t, p, nil)
	for range 3 {
		a, err := l.RequestAs(u.UID, u.GID, socket, "GET", "/sched/v0.0.43/ping", "")
		harness.Must(t, err)
		a.Want(t, http.StatusOK)
	}

	harness.Must(t, os.Rename(l.Socket(), l.Socket()+".before"))
	imposter, err := net.ListenUnix("unix", &net.UnixAddr{Name: l.Socket()})
	harness.Must(t, err)
	defer imposter.Close()
	harness.Must(t, os.Chmod(l.Socket(), 0o777))
	harness.Must(t, os.Chown(l.Socket(), int(impostorUser.UID), int(impostorUser.GID)))
	harness.Must(t, listenAs(imposter, impostorUser))
	a, err := l.RequestAs(u.UID, u.GID, socket, "GET", "/sched/v0.0.43/ping", "")
	harness.Must(t, err)
	a.Want(t, http.StatusServiceUnavailable)
	harness.Must(t, imposter.SetDeadline(time.Now().Add(100*time.Millisecond))) // the gateway has answered, so it has made all connections for this request
	for {
		c, err := imposter.Accept()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		harness.Must(t, err)
		if received, err := io.ReadAll(c); err != nil || len(received) > 0 {
			t.Errorf("an imposter received %q, %v", received, err)
		}
		c.Close()
	}
}

// listenAs makes the kernel report u as the user who listens on l.
func listenAs(l *net.UnixListener, u harness.Account) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	return thread.RunAs(u.UID, u.GID, func() error {
		var listenErr error
		err := raw.Control(func(fd uintptr) { listenErr = unix.Listen(int(fd), 5) })
		return errors.Join(err, listenErr)
	})
}
