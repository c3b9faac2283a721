package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/internal/socket/sockettest"
)

// ignores reports whether a process ignores a signal.
func ignores(t *testing.T, pid int, s syscall.Signal) bool {
	t.Helper()
	mask, err := strconv.ParseUint(harness.StatusOf(t, pid)["SigIgn"], 16, 64)
	harness.Must(t, err)
	return mask&(1<<(s-1)) != 0
}

// TestSIGPIPE checks that the parent and its workers already ignore SIGPIPE
// when they log their first line. In inetd mode the gateway must also ignore
// SIGPIPE, because the reader of its output may exit at any time.
func TestSIGPIPE(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	g := l.StartGateway(t, nil, "127.0.0.1:0")
	pids := append(g.Workers(), g.PID())
	if len(pids) < 2 {
		t.Fatal("no worker")
	}
	for _, pid := range pids {
		if !ignores(t, pid, syscall.SIGPIPE) {
			t.Errorf("process %d does not ignore SIGPIPE", pid)
		}
	}
	closedPipe := func() *os.File {
		r, w, err := os.Pipe()
		harness.Must(t, err)
		r.Close()
		return w
	}
	t.Run("the log is not read", func(t *testing.T) {
		address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
		cmd := l.InetdCommand("-vvvvvv", "-a", "rest_auth/jwt", address) // -vvvvvv makes the gateway write to the log at once
		cmd.Stderr = closedPipe()
		harness.Must(t, cmd.Start())
		harness.Eventually(t, "it serves", func() bool {
			a, err := (&harness.Gateway{Lab: l, T: t}).Ping(address)
			return err == nil && a.Status == 200 || cmd.Process.Signal(syscall.Signal(0)) != nil || zombie(cmd.Process.Pid)
		})
		harness.Must(t, cmd.Process.Signal(syscall.SIGTERM))
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Run("the answer is not read", func(t *testing.T) {
		cmd := l.InetdCommand()
		cmd.Stdin = strings.NewReader(strings.Repeat("GET http://localhost/sched/v0.0.43/ping HTTP/1.1\n\n", 10))
		cmd.Stdout = closedPipe()
		cmd.Run()
		if s := cmd.ProcessState.Sys().(syscall.WaitStatus); s.Signaled() {
			t.Errorf("ended by %v", s.Signal())
		}
	})
}

// zombie reports whether a process has exited, even if its parent has already
// waited for it.
func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

// pendingSubmission is a submission whose last byte has not been sent yet.
type pendingSubmission struct {
	net.Conn
	lastByte string
}

func startSubmission(l *harness.Lab, t *testing.T, address string) pendingSubmission {
	t.Helper()
	return startSubmissions(l, t, address, 1)[0]
}

// startSubmissions does the same as startSubmission for several submissions at
// once, because on a busy machine the first one may otherwise have timed out when
// the last one starts.
func startSubmissions(l *harness.Lab, t *testing.T, address string, n int) (list []pendingSubmission) {
	t.Helper()
	body := l.JobRequest("true", nil)
	for range n {
		list = append(list, sendHead(l, t, address, body))
	}
	for _, h := range list {
		line, err := bufio.NewReaderSize(io.LimitReader(h, int64(len("HTTP/1.1 100 Continue\r\n\r\n"))), 32).ReadString('\n')
		if err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("not asked for the body: %q, %v", line, err)
		}
		fmt.Fprint(h, body[:len(body)-1])
	}
	return list
}

// sendHead sends the header of a submission.
func sendHead(l *harness.Lab, t *testing.T, address, body string) pendingSubmission {
	t.Helper()
	c, err := net.Dial("tcp", address)
	harness.Must(t, err)
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "POST /sched/v0.0.43/job/submit HTTP/1.1\r\nHost: lab\r\nX-SCHED-USER-TOKEN: %s\r\n"+
		"Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", l.OwnToken, len(body))
	return pendingSubmission{c, body[len(body)-1:]}
}

// finish sends the rest of the submission and reads the answer.
func (h pendingSubmission) finish() (harness.Answer, error) {
	fmt.Fprint(h, h.lastByte)
	resp, err := http.ReadResponse(bufio.NewReader(h), nil)
	if err != nil {
		return harness.Answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return harness.Answer{Status: resp.StatusCode, Header: resp.Header, Text: string(text)}, err
}

// TestGraceful checks that after SIGINT or SIGTERM, requests in progress are
// answered, no new connections are accepted, and the exit status is 0. After a
// second signal, the gateway must exit without waiting for the requests in
// progress.
func TestGraceful(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
			g := l.StartGateway(t, nil, address)
			h := startSubmission(l, t, address)
			harness.Must(t, syscall.Kill(g.PID(), s))
			harness.Eventually(t, "no connection is accepted", func() bool {
				c, err := net.Dial("tcp", address)
				if err == nil {
					c.Close()
				}
				return errors.Is(err, syscall.ECONNREFUSED)
			})
			if a, err := h.finish(); err != nil || a.Status != 200 || !strings.Contains(a.Text, `"job_id"`) {
				t.Errorf("the request in flight: %v, %d %s", err, a.Status, a.Text)
			}
			<-g.Done()
			if err := g.Stop(); err != nil {
				t.Errorf("%v\n%s", err, g.Logged())
			}
		})
	}
	t.Run("silent connections", func(t *testing.T) {
		path := filepath.Join(sockettest.Dir(t), "s")
		g := l.StartGateway(t, []string{"SCHEDRESTD_MAX_CONNECTIONS=1"}, "unix:"+path) // so that one is served and one waits
		var silent []net.Conn
		for range 2 {
			c, err := net.Dial("unix", path)
			harness.Must(t, err)
			defer c.Close()
			silent = append(silent, c)
		}
		harness.Must(t, syscall.Kill(g.PID(), syscall.SIGINT))
		for _, c := range silent {
			if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("%d bytes, %v", n, err)
			}
		}
		<-g.Done() // both before the time limit for a request's header
		if err := g.Stop(); err != nil {
			t.Errorf("%v\n%s", err, g.Logged())
		}
	})
	t.Run("twice", func(t *testing.T) {
		address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
		g := l.StartGateway(t, nil, address)
		startSubmission(l, t, address)
		harness.Must(t, syscall.Kill(g.PID(), syscall.SIGINT))
		g.Eventually(t, "it drains", func() bool { return strings.Contains(g.Logged(), "draining") })
		harness.Must(t, syscall.Kill(g.PID(), syscall.SIGTERM))
		<-g.Done() // the gateway must exit before the client's time limit
		if !strings.Contains(g.Logged(), "error: ") {
			t.Errorf("no line about an unanswered client:\n%s", g.Logged())
		}
	})
}

// countPending returns the number of connections that wait in the kernel's
// queue because the listener at address has not accepted them yet.
func countPending(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	harness.Must(t, err)
	port, err := strconv.Atoi(text)
	harness.Must(t, err)
	var n int64
	harness.Eventually(t, "a process listens on "+address, func() (found bool) { // if /proc/net/tcp changes during the read, lines may be missing
		table, err := os.ReadFile("/proc/thread-self/net/tcp") // /proc/net shows the namespace of the first thread, and a test may have moved that thread
		harness.Must(t, err)
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if len(f) > 4 && f[3] == "0A" && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
				_, queue, _ := strings.Cut(f[4], ":")
				n, err = strconv.ParseInt(queue, 16, 32)
				harness.Must(t, err)
				return true
			}
		}
		return false
	})
	return int(n)
}

// TestConnectionsHandled checks that the gateway handles as many connections as
// --max-connections permits, 124 by default. The next connection must wait
// until one of them has ended.
func TestConnectionsHandled(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	for name, tt := range map[string]struct {
		env, args []string
		limit     int
	}{
		"default":                                {nil, nil, 124},
		"--max-connections":                      {[]string{"SCHEDRESTD_MAX_CONNECTIONS=9"}, []string{"--max-connections", "3"}, 3},
		"SCHEDRESTD_MAX_CONNECTIONS":             {[]string{"SCHEDRESTD_MAX_CONNECTIONS=4"}, nil, 4},
		"SLURMRESTD_MAX_CONNECTIONS":             {[]string{"SLURMRESTD_MAX_CONNECTIONS=5"}, nil, 5},
		"more than the usual limit of the shell": {nil, []string{"--max-connections", "400"}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
			g := l.StartGateway(t, tt.env, append(tt.args, address)...)
			handled := startSubmissions(l, t, address, tt.limit)
			if n := countParked(g); n != 0 {
				t.Fatalf("%d connections wait while %d are handled", n, tt.limit)
			}
			next, err := net.Dial("tcp", address)
			harness.Must(t, err)
			defer next.Close()
			fmt.Fprint(next, "GET /healthz HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n")
			harness.Eventually(t, "the next one waits", func() bool { return countParked(g) == 1 })
			handled[0].Close()
			if resp, err := http.ReadResponse(bufio.NewReader(next), nil); err != nil || resp.StatusCode != 200 {
				t.Errorf("the connection that waited: %v", err)
			}
			if a, err := handled[1].finish(); err != nil || a.Status != 200 {
				t.Errorf("a connection that was handled all the time: %v, %d\n%s", err, a.Status, g.Logged())
			}
		})
	}
}

// countParked returns the number of waiting connections, which it reads from
// the gateway's counters.
func countParked(g *harness.Gateway) int {
	g.T.Helper()
	before := len(harness.ParentCounts.FindAllString(g.Logged(), -1))
	harness.Must(g.T, syscall.Kill(g.PID(), syscall.SIGUSR1))
	var all []string
	harness.Eventually(g.T, "the counters are in the log", func() bool {
		all = harness.ParentCounts.FindAllString(g.Logged(), -1)
		return len(all) > before
	})
	_, text, _ := strings.Cut(all[len(all)-1], " connections.waiting=")
	number, _, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(number)
	harness.Must(g.T, err)
	return n
}

// TestNoneIsLost opens 500 connections to a gateway that is already handling
// 8, the most that it may handle at a time. The new connections must wait, and
// none may be lost.
func TestNoneIsLost(t *testing.T) {
	t.Parallel()
	const limit, waiting = 8, 500
	l := harness.NewDaemons(t)
	address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	g := l.StartGateway(t, nil, "--max-connections", strconv.Itoa(limit), address)
	controller := l.Daemons["schedctld"].PID()
	harness.Must(t, syscall.Kill(controller, syscall.SIGSTOP)) // so that the first requests take as long as the other clients need to connect
	defer syscall.Kill(controller, syscall.SIGCONT)
	conns := make([]net.Conn, limit+waiting)
	connect := func(i int, path string) (err error) {
		if conns[i], err = net.Dial("tcp", address); err != nil {
			return err
		}
		t.Cleanup(func() { conns[i].Close() })
		_, err = fmt.Fprintf(conns[i], "GET /sched/v0.0.43/%s HTTP/1.1\r\nHost: lab\r\nX-SCHED-USER-TOKEN: %s\r\nConnection: close\r\n\r\n", path, l.OwnToken)
		return err
	}
	for i := range limit {
		harness.Must(t, connect(i, "nodes"))
	}
	var dials sync.WaitGroup
	failures := make([]error, 8)
	for first := range failures {
		dials.Go(func() {
			for i := limit + first; i < len(conns) && failures[first] == nil; i += len(failures) {
				failures[first] = connect(i, "ping")
			}
		})
	}
	dials.Wait()
	harness.Must(t, errors.Join(failures...))
	harness.Eventually(t, "all wait", func() bool { return countPending(t, address) == 0 && countParked(g) == waiting })
	harness.Must(t, syscall.Kill(controller, syscall.SIGCONT))
	for i, c := range conns {
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 200 {
			t.Errorf("connection %d: %v, %+v", i, err, resp)
		}
	}
	g.CheckServes(address)
}

// TestThreads checks that the numbers of processors that the workers may use
// add up to the value of -t.
func TestThreads(t *testing.T) {
	t.Parallel()
	harness.NeedRoot(t) // only root can read a worker's environment
	l := harness.NewDaemons(t)
	for want, args := range map[int][]string{1: {"-t", "1"}, 2: {"-t2"}, 5: {"--threads=5"}, 4: nil} {
		g := l.StartGateway(t, nil, append(args, "127.0.0.1:0")...)
		sum := 0
		for _, pid := range g.Workers() {
			text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
			harness.Must(t, err)
			for v := range strings.SplitSeq(string(text), "\x00") {
				if n, ok := strings.CutPrefix(v, "GOMAXPROCS="); ok {
					i, err := strconv.Atoi(n)
					harness.Must(t, err)
					sum += i
				}
			}
		}
		if sum != want {
			t.Errorf("%q: %d", args, sum)
		}
	}
	cmd := l.InetdCommand("-t", "3")
	cmd.Stdin = strings.NewReader("")
	if _, log, status := harness.RunCommand(t, cmd); status != 0 || !strings.Contains(log, "option -t ignored") {
		t.Errorf("in inetd mode: exit status %d\n%s", status, log)
	}
}
