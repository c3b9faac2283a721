package admission

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/demo/thread"
	"schedrestd/integration/harness"
	"schedrestd/internal/sockaddr"
)

// floodVariable is an environment variable that turns the test's program into a
// program that floods a socket. Its value contains an address, a uid, a gid and
// the byte to send over each connection, or "-" for none. If the byte is "n" or
// "c", nothing is sent, and the program does not wait until it is connected. It
// resets each connection, or with "c" closes it.
const floodVariable = "TEST_FLOOD"

const (
	floodThreads  = 6
	floodRequests = 5
)

// flood connects to an address and closes the connection, as often as possible,
// on several threads of one user, until standard input ends.
func flood(options string) error {
	var address, payload string
	var uid, gid uint32
	if _, err := fmt.Sscan(options, &address, &uid, &gid, &payload); err != nil {
		return err
	}
	family, sa := unix.AF_UNIX, unix.Sockaddr(&unix.SockaddrUnix{Name: address})
	if at, err := netip.ParseAddrPort(address); err == nil {
		family, sa = sockaddr.Sockaddr(at)
	}
	for i := range floodThreads {
		go thread.RunAs(uid, gid, func() error {
			for n := 0; ; n++ {
				fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
				if err != nil {
					return err
				}
				if payload == "n" || payload == "c" {
					_ = unix.SetNonblock(fd, true)
				}
				// For a while after a close without a reset, the client's port
				// can't be used again.
				if payload != "c" {
					_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
				} else if family == unix.AF_INET {
					_ = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 1, byte(n >> 12), byte(i + 1)}})
				}
				if err := unix.Connect(fd, sa); err == nil && payload == "x" {
					_, _ = unix.Write(fd, []byte(payload))
				}
				unix.Close(fd)
			}
		})
	}
	_, err := os.Stdin.Read(make([]byte, 1))
	return err
}

// startFlood floods an address as a user until the test ends.
func startFlood(t *testing.T, address string, user harness.Account, payload string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %s", floodVariable, address, user.UID, user.GID, payload))
	in, err := cmd.StdinPipe()
	harness.Must(t, err)
	harness.Must(t, cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Wait() })
}

// TestFlood checks that a user who connects and closes as fast as possible does
// not keep other users from being served. It floods each kind of socket, and
// meanwhile sends requests as another user.
func TestFlood(t *testing.T) {
	harness.NeedRoot(t)
	alice, bob := harness.TwoUsers(t)
	l := harness.NewDaemons(t, func(l *harness.Lab) { harness.Must(t, os.Chmod(filepath.Join(l.Dir, "run"), 0o755)) })
	usersSocket, tokenSocket := harness.SocketDir(t, l)+"/users", harness.SocketDir(t, l)+"/token"
	port, controllerPort := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", l.Controller)
	l.StartGateway(t, []string{"SCHEDRESTD_SECURITY=become_user"}, "-f", l.Conf(), "-a", "rest_auth/local", "--socket-mode", "0666", "unix:"+usersSocket)
	l.StartGateway(t, nil, "--socket-mode", "0666", "unix:"+tokenSocket, port)
	request := func(dial func() (net.Conn, error), header ...string) func() (time.Duration, error) {
		return func() (time.Duration, error) {
			begun := time.Now()
			a, err := l.TryRequest(harness.NewClient(dial), "GET", "/sched/v0.0.43/jobs", "", header...)
			if err == nil && a.Status != http.StatusOK {
				err = fmt.Errorf("%d %s", a.Status, a.Text)
			}
			return time.Since(begun), err
		}
	}
	overUnix := func(path string) func() (net.Conn, error) {
		return func() (net.Conn, error) { return thread.DialAs(bob.UID, bob.GID, path) }
	}
	overTCP := func() (c net.Conn, err error) {
		err = thread.RunAs(bob.UID, bob.GID, func() error { c, err = net.DialTimeout("tcp", port, time.Minute); return err })
		return c, err
	}
	for name, tt := range map[string]struct {
		flooded string
		request func() (time.Duration, error)
	}{
		"become_user":         {usersSocket, request(overUnix(usersSocket), "X-SCHED-USER-TOKEN:")},
		"UNIX socket":         {tokenSocket, request(overUnix(tokenSocket))},
		"port":                {port, request(overTCP)},
		"controller's socket": {l.Socket(), request(overUnix(usersSocket), "X-SCHED-USER-TOKEN:")},
		"controller's port":   {controllerPort, request(overTCP)},
	} {
		for _, payload := range []string{"-", "x", "n", "c"} {
			t.Run(name+"/"+payload, func(t *testing.T) {
				if _, err := tt.request(); err != nil {
					t.Fatal(err)
				}
				startFlood(t, tt.flooded, alice, payload)
				time.Sleep(100 * time.Millisecond)
				var took []time.Duration
				failed := map[string]int{}
				for range floodRequests {
					d, err := tt.request()
					if took = append(took, d); err != nil {
						failed[err.Error()]++
					}
				}
				slices.Sort(took)
				t.Logf("median %s, slowest %s", took[len(took)/2], took[len(took)-1])
				for err, n := range failed {
					t.Errorf("%d requests: %s", n, err)
				}
			})
		}
	}
}
