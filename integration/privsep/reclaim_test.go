package privsep

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
)

// dial connects to g and sends a text.
func (g *gateway) dial(t *testing.T, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// readAll returns everything that still arrives on c, up to the end of the
// stream.
func readAll(t *testing.T, c net.Conn) string {
	t.Helper()
	b, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the connection is still there")
	}
	return string(b)
}

// stillOpen fails the test if c has received bytes or the end of the stream. It
// sets a new deadline, because an expired deadline would hide both.
func stillOpen(t *testing.T, c net.Conn, name string) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: %d bytes, %v", name, n, err)
	}
}

const request = "GET /pid HTTP/1.1\r\nHost: x\r\n\r\n"

// TestReclaimed checks which connections are closed while a client waits for a
// slot:
//   - A connection that is idle, or on which nothing has arrived, is closed
//     without an answer.
//   - A connection on which a part of a header has arrived is closed after an
//     error answer.
//   - A connection whose request is being answered stays open and gets its
//     answer.
func TestReclaimed(t *testing.T) {
	t.Parallel()
	t.Run("resting", func(t *testing.T) {
		g := serve(t, plainUser(t), testConfig{Connections: 1})
		c := g.dial(t, request)
		if status, _, err := answer(c); status != http.StatusOK {
			t.Fatal(status, err)
		}
		g.mustGet("/pid")
		if received := readAll(t, c); received != "" {
			t.Errorf("it got %q", received)
		}
	})
	t.Run("silent", func(t *testing.T) {
		g := serve(t, plainUser(t), testConfig{Connections: 1})
		c := g.dial(t, "")
		closed := make(chan string, 1)
		go func() {
			b, err := io.ReadAll(c)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				b = []byte("nothing for too long")
			}
			closed <- string(b)
		}()
		for { // the kernel may keep a silent connection for a while before it passes the connection to the gateway
			select {
			case received := <-closed:
				if received != "" {
					t.Errorf("it got %q", received)
				}
				return
			default:
				g.mustGet("/pid")
			}
		}
	})
	for name, part := range map[string]string{
		"a part of a header":             "GET /pid HTTP/1.1\r\nHo",
		"one byte":                       "G",
		"a part of a pipelined header":   request + "GET /pid HTTP/1.1\r\nHost: x\r\nA",
		"one byte of a pipelined header": request + "G",
	} {
		t.Run(name, func(t *testing.T) {
			g := serve(t, plainUser(t), testConfig{Connections: 1})
			c := g.dial(t, part)
			if strings.HasPrefix(part, request) {
				if status, _, err := answer(c); status != http.StatusOK {
					t.Fatal(status, err)
				}
			}
			g.mustGet("/pid")
			if received := readAll(t, c); !strings.HasPrefix(received, "HTTP/1.1 408 ") || !strings.Contains(received, `"errors":[{`) {
				t.Errorf("it got %q", received)
			}
		})
	}
	t.Run("being answered", func(t *testing.T) {
		g := serve(t, plainUser(t), testConfig{Connections: 1})
		c := g.dial(t, "GET /wait?ms=1000 HTTP/1.1\r\nHost: x\r\n\r\n")
		g.await("worker: a request waits", nil)
		g.mustGet("/pid") // this request waits for the slot of the busy connection, which is reclaimed
		received := readAll(t, c)
		if !strings.HasPrefix(received, "HTTP/1.1 200 ") || !strings.HasSuffix(received, "waited") {
			t.Errorf("it got %q", received)
		}
	})
}

// TestNoneIsReclaimedNeedlessly checks that no connection is closed to make room
// while a slot is free. The gateway's connection limit is well above the number
// of connections that the test opens, because a dispatcher on a busy machine
// learns late that a slot is free.
func TestNoneIsReclaimedNeedlessly(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{Connections: 10})
	resting, waiting := g.dial(t, request), g.dial(t, "GET /pid HT")
	if status, _, err := answer(resting); status != http.StatusOK {
		t.Fatal(status, err)
	}
	for range 100 {
		g.mustGet("/pid")
	}
	fmt.Fprint(resting, request)
	fmt.Fprint(waiting, "TP/1.1\r\nHost: x\r\n\r\n")
	for _, c := range []net.Conn{resting, waiting} {
		if status, _, err := answer(c); status != http.StatusOK {
			t.Error(status, err)
		}
	}
}

// TestThousandsOverALimit checks that a request on each of 2000 concurrent
// connections is answered although the limit is 8. In the first run, each
// client closes its connection after the answer. In the second run, with fewer
// connections, each client leaves its connection open until the gateway closes
// it or all clients have been answered.
func TestThousandsOverALimit(t *testing.T) {
	t.Parallel()
	for keep, clients := range map[bool]int{false: 2000, true: 300} {
		t.Run(fmt.Sprintf("kept %v", keep), func(t *testing.T) {
			needDescriptors(t, uint64(clients)+100)
			g := serve(t, plainUser(t), testConfig{Connections: 8})
			var wg sync.WaitGroup
			var answered atomic.Int32
			done := make(chan struct{})
			connecting := make(chan struct{}, 8) // a client that connects and sends nothing for a while would be closed
			for range clients {
				wg.Go(func() {
					connecting <- struct{}{}
					c, err := net.Dial("tcp", g.addr)
					if err == nil {
						_, err = fmt.Fprint(c, request)
					}
					<-connecting
					if err != nil {
						t.Error(err)
						return
					}
					defer c.Close()
					if status, _, err := answer(c); err != nil || status != http.StatusOK {
						t.Errorf("one of %d: %d, %v", clients, status, err)
					}
					if int(answered.Add(1)) == clients {
						close(done)
					}
					if keep {
						go func() { <-done; c.Close() }()
						_, _ = io.Copy(io.Discard, c)
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestSlowClients checks that every request of a normal client is answered. At
// the same time, 500 other clients each send one byte of a header per second,
// and reconnect whenever they are disconnected.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	for range 500 {
		wg.Go(func() {
			for {
				c, err := net.Dial("tcp", g.addr)
				if err != nil {
					return
				}
				closed := make(chan struct{})
				go func() { _, _ = io.Copy(io.Discard, c); close(closed) }()
				for i := 0; ; i++ {
					if _, err := c.Write([]byte{request[i%20]}); err != nil {
						break
					}
					select {
					case <-stop:
						c.Close()
						<-closed
						return
					case <-closed:
					case <-time.After(time.Second):
						continue
					}
					break
				}
				c.Close()
				<-closed
			}
		})
	}
	g.await("worker: request", func(r map[string]any) bool { return r["status"] == "408" }) // the slow clients hold all slots
	start := time.Now()
	for range 20 {
		g.mustGet("/pid")
	}
	t.Logf("20 requests of a healthy client took %s", time.Since(start))
}

// TestCapturedWorkerGivesNoWay checks that a captured worker can't keep a
// client from getting a slot. A captured worker and an honest worker have one
// idle connection each. Since the captured worker does not close its
// connection, the honest worker must close the other one.
func TestCapturedWorkerGivesNoWay(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	mark := filepath.Join(socketDir(t, t.TempDir(), as), "mark")
	g := serve(t, as, testConfig{Argv: argv{ipc.Worker: {"first keeps its idle connection", mark}}, Workers: 2, Threads: 2, Connections: 2,
		Silence: time.Hour}) // otherwise the captured worker would be killed, because it answers no Ping
	list := []net.Conn{g.dial(t, request), g.dial(t, request)} // one for each worker
	answered := make(chan net.Conn, len(list))
	for _, c := range list {
		go func() {
			if status, _, err := answer(c); err == nil && status == http.StatusOK {
				answered <- c
			}
		}()
	}
	honest := <-answered // and its connection is idle now
	g.mustGet("/pid")
	if received := readAll(t, honest); received != "" {
		t.Errorf("the idle one got %q", received)
	}
	for _, c := range list {
		if c != honest {
			stillOpen(t, c, "the captured worker's connection")
		}
	}
}

// needDescriptors skips a test that needs more open files than this process may
// have.
func needDescriptors(t *testing.T, n uint64) {
	t.Helper()
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil || l.Cur < n {
		t.Skipf("needs %d descriptors: the limit is %d", n, l.Cur)
	}
}
