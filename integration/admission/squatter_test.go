package admission

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/demo/thread"
	"schedrestd/integration/harness"
)

// squatter listens on a port of the loopback interface as another user, and
// counts the bytes that it receives.
type squatter struct {
	accepted, bytes atomic.Int64
	done            chan struct{}
	result          chan error
}

func newSquatter(t *testing.T, user harness.Account, port int) *squatter {
	t.Helper()
	i := &squatter{done: make(chan struct{}), result: make(chan error, 1)}
	ready := make(chan error)
	go func() {
		i.result <- thread.RunAs(user.UID, user.GID, func() error {
			ln, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
			if err == nil {
				err = unix.SetsockoptInt(ln, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
			}
			if err == nil {
				err = unix.Bind(ln, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
			}
			if err == nil {
				err = unix.Listen(ln, 100)
			}
			ready <- err
			if err != nil {
				return err
			}
			defer unix.Close(ln)
			return i.serve(ln)
		})
	}()
	harness.Must(t, <-ready)
	return i
}

// serve accepts connections and reads from them on a thread with the other
// user's uid. A connection that another thread accepts would belong to root.
func (i *squatter) serve(ln int) error {
	open := []unix.PollFd{{Fd: int32(ln), Events: unix.POLLIN}}
	defer func() {
		for _, p := range open[1:] {
			unix.Close(int(p.Fd))
		}
	}()
	for b := make([]byte, 4096); ; {
		select {
		case <-i.done:
			return nil
		default:
		}
		if _, err := unix.Poll(open, 20); err != nil && err != unix.EINTR {
			return err
		}
		if fd, _, err := unix.Accept4(ln, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC); err == nil {
			i.accepted.Add(1)
			open = append(open, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
		}
		for _, p := range open[1:] {
			if n, err := unix.Read(int(p.Fd), b); err == nil {
				i.bytes.Add(int64(n))
			}
		}
	}
}

func (i *squatter) stop(t *testing.T) {
	t.Helper()
	close(i.done)
	harness.Must(t, <-i.result)
}

// TestPortOfAnotherUser checks that a user who binds the port of a stopped
// controller receives neither a token nor a request. Requests must be answered
// with 503, the log must name the user, and requests must be served again when
// the controller is back.
func TestPortOfAnotherUser(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t)
	l, user := harness.NewLab(t), harness.OrdinaryUser(t)
	a := startLimited(t, l)
	client := newSource(t, ownUID, true)
	if status, _ := a.ping(client); status != http.StatusOK {
		t.Fatalf("at first: %d", status)
	}
	l.Daemons["schedctld"].Stop()
	i := newSquatter(t, user, l.Controller)
	listJobs := func() harness.Answer {
		t.Helper()
		lab := *l
		lab.URL = "http://" + a.address
		got, err := lab.TryRequest(client, "GET", "/sched/"+harness.Version+"/jobs", "", "X-SCHED-USER-TOKEN: "+l.OwnToken)
		harness.Must(t, err)
		return got
	}
	for range 10 {
		if got := listJobs(); got.Status != http.StatusServiceUnavailable {
			t.Errorf("served by another user: %d %s", got.Status, got.Text)
		}
	}
	harness.Eventually(t, "the gateway connects to the other user's port", func() bool { return i.accepted.Load() > 0 })
	time.Sleep(100 * time.Millisecond) // the bytes, if any, have arrived
	if n := i.bytes.Load(); n != 0 {
		t.Errorf("the other user was sent %d bytes", n)
	}
	reason := fmt.Sprintf("the port 127.0.0.1:%d is served by uid %d, which is neither root's nor the scheduler's user's", l.Controller, user.UID)
	if !strings.Contains(a.Logged(), reason) {
		t.Errorf("the log does not have %q:\n%s", reason, a.Logged())
	}
	i.stop(t)
	l.Up(l.Ctld)
	harness.Eventually(t, "requests are answered again", func() bool { return listJobs().Status == http.StatusOK })
}
