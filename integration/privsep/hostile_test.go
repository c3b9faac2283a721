package privsep

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"schedrestd/gateway/dispatcher"
	"schedrestd/ipc"
	"strconv"
	"strings"
	"testing"
	"time"

	"schedrestd/gateway/dispatcher/pool"
	"schedrestd/internal/printable"
)

// TestHostileWorkers checks that each worker that breaks the protocol is
// killed, that the log states the reason, and that the gateway continues to
// serve.
func TestHostileWorkers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		part, want string
		connect    bool // the worker breaks the protocol only when it is given a connection
	}{
		{part: "early", want: "Done of the worker is not permitted while proving"},
		{part: "unknown kind", want: "kind 99 of the worker is not in the protocol table"},
		{part: "dial of nothing", want: "which the configuration does not have"},
		{part: "parent's kind", want: "Drain of the worker may not be sent by the worker"},
		{part: "ready twice", want: "Ready of the worker is not permitted while serving"},
		{part: "done of nothing", want: "which it does not hold"},
		{part: "verify", want: "may not be sent by the worker to the parent"},
		{part: "verified", want: "Verified of the worker may not be sent by the worker to the parent"},
		{part: "public keys", want: "Keys of the worker may not be sent by the worker to the parent"},
		{part: "secret keys", want: "SecretKeys of the worker may not be sent by the worker to the parent"},
		{part: "leftover", want: "has 9 bytes, not 8"},
		{part: "oversized", want: "longer than"},
		{part: "descriptor", want: "came with 1 descriptors"},
		{part: "descriptors", want: "cut off"},
		{part: "pong of nothing", want: "which was not requested"},
		{part: "done untaken", want: "which it does not hold", connect: true},
		{part: "taken twice", want: "which it was not given", connect: true},
		{part: "done twice", want: "which it does not hold", connect: true},
		{part: "done of another", want: "which it does not hold", connect: true},
		{part: "progress of nothing", want: "Progress for connection 1, which it does not hold"},
		{part: "no stage", want: "has a stage that is 0"},
		{part: "progress untaken", want: "which it does not hold", connect: true},
		{part: "progress of another", want: "which it does not hold", connect: true},
		{part: "progress after done", want: "which it does not hold", connect: true},
		{part: "progress twice", want: "reported twice", connect: true},
		{part: "progress without end", want: "Progress too often", connect: true},
	}
	for _, tt := range tests {
		t.Run(tt.part, func(t *testing.T) {
			g := launch(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {tt.part}}, Workers: 1})
			if tt.connect {
				r := g.await("serving", nil)
				c, err := net.Dial("tcp", r["listen"].([]any)[0].(string))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
			}
			r := g.awaitReason("worker killed", tt.want)
			if r["level"] != "ERROR" || r["worker"] == nil || r["uid"] == nil || r["pid"] == nil {
				t.Errorf("the record does not say who it was: %v", r)
			}
			if tt.part != "early" { // the case early stops the start
				g.await("worker ready", func(r map[string]any) bool { return r["worker"] == firstWorker+1 })
			}
		})
	}
}

// TestStoppedWorker checks that the dispatcher terminates a worker that does
// not read its channel.
func TestStoppedWorker(t *testing.T) {
	t.Parallel()
	g := launch(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {"stopped"}}, Workers: 1, Silence: hangLimit})
	g.awaitReason("worker terminated", "has not read its channel")
}

// TestQueuedConnections checks connections that wait in the channel of a worker
// that never reads it. The dispatcher must terminate the worker, and another
// worker must answer the connections.
func TestQueuedConnections(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(sharedDir(t), "stopped")
	if as := plainUser(t); as != nil {
		if err := os.Chown(filepath.Dir(mark), int(as.Uid), int(as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	g := serve(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {"first stops", mark}}, Workers: 1, Silence: hangLimit})
	done := make(chan error)
	for range 20 {
		go func() {
			_, err := g.get("/pid")
			done <- err
		}()
	}
	for range 20 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	g.await("worker terminated", func(r map[string]any) bool { return r["connections_lost"] == 0.0 && r["connections_retried"] != 0.0 })
}

// TestTwiceIsEnough checks that if a worker dies, the dispatcher gives its
// connection to a second worker, but never to a third.
func TestTwiceIsEnough(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {"dies before"}}, Workers: 1})
	c, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(patience))
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection is still there: %v", err)
	}
	g.await("worker exited unexpectedly", func(r map[string]any) bool { return r["worker"] == firstWorker && r["connections_retried"] == 1.0 })
	g.await("worker exited unexpectedly", func(r map[string]any) bool { return r["worker"] == firstWorker+1 && r["connections_lost"] == 1.0 })
	g.await("worker ready", func(r map[string]any) bool { return r["worker"] == firstWorker+2 })
}

// TestOrphan checks that a worker's death is noticed although a process that
// the worker left behind still runs.
func TestOrphan(t *testing.T) {
	t.Parallel()
	g := launch(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {"orphan"}}, Workers: 1})
	g.await("worker exited unexpectedly", nil)
	g.await("worker ready", func(r map[string]any) bool { return r["worker"] == firstWorker+1 })
}

// TestDeadlyRequest checks a gateway whose workers are killed by every
// connection that they get. The gateway must pause before it starts the next
// worker.
func TestDeadlyRequest(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {"exits on it"}}, Workers: 1})
	for n := range 4 {
		c, err := net.Dial("tcp", g.addr)
		if err != nil {
			t.Fatal(err)
		}
		g.await("worker exited unexpectedly", func(r map[string]any) bool {
			return r["worker"] == firstWorker+float64(n) && r["connections_lost"] == 1.0
		})
		c.Close()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var starts []time.Time
	for _, r := range g.records {
		if r["msg"] == "worker ready" {
			at, err := time.Parse(time.RFC3339Nano, r["time"].(string))
			if err != nil {
				t.Fatal(err)
			}
			starts = append(starts, at)
		}
	}
	if len(starts) < 4 {
		t.Fatalf("%d workers", len(starts))
	}
	if took := starts[3].Sub(starts[0]); took < pool.Backoff(1)+pool.Backoff(2)+pool.Backoff(3) {
		t.Errorf("four workers within %s", took)
	}
}

// TestWorkerOutput checks that the log lines of a worker are escaped, labelled
// and shortened, and that their number is limited.
func TestWorkerOutput(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{Argv: argv{ipc.Dispatcher: dispatcherArgs(dispatcher.Limits{LogBurst: 50, LogRate: 20})}})
	g.mustGet("/log?text=" + url.QueryEscape("a line"))
	r := g.await("worker: a line", nil)
	if r["level"] != "WARN" || r["n"] != "1" || r["worker"] == nil || r["worker_uid"] == nil || r["worker_pid"] == nil {
		t.Errorf("label: %v", r)
	}
	g.mustGet("/raw?text=" + url.QueryEscape("red \x1b[31m\r\u202e\xff end\nlevel=INFO msg=forged worker=9 user=root worker_uid=0 user=eve time=x\n"))
	g.await(`worker: red \x1b[31m\r\u202e\xff end`, nil)
	// The text "forged" is on its own line, after the dispatcher's prefix.
	r = g.await("worker: forged", nil)
	if first := regexp.MustCompile(`^time=20\S+ worker=\d+ worker_pid=\d+ worker_uid=\d+ level=INFO msg=forged worker=9 `); !first.MatchString(r["raw"].(string)) {
		t.Errorf("forged: %v", r)
	}
	g.mustGet("/raw?text=" + strings.Repeat("y", 5000) + "%0A")
	g.await("worker: "+strings.Repeat("y", printable.MaxLength), nil)
	g.mustGet("/flood")
	g.await("worker: too many log lines", func(r map[string]any) bool { n, _ := strconv.Atoi(r["lines_dropped"].(string)); return n > 100 })
	g.mustGet("/pid")
	g.mu.Lock()
	defer g.mu.Unlock()
	flood := 0
	for _, r := range g.records {
		if strings.HasPrefix(fmt.Sprint(r["msg"]), "worker: xxxx") {
			flood++
		}
	}
	if flood == 0 || flood > 10_000 {
		t.Errorf("%d of 20000 lines got through", flood)
	}
}

// TestBackOff checks that the gateway accepts connections during the pause
// before it starts the next worker, and closes connections that wait too long.
func TestBackOff(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{Argv: argv{ipc.Dispatcher: dispatcherArgs(dispatcher.Limits{HandLimit: 20 * time.Millisecond}), ipc.Worker: {"exits on it"}}, Workers: 1, Connections: 50})
	for range 5 { // the pause grows to 800 ms
		c, err := net.Dial("tcp", g.addr)
		if err != nil {
			t.Fatal(err)
		}
		c.SetReadDeadline(time.Now().Add(patience))
		if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("the connection is still there: %v", err)
		}
		c.Close()
	}
	// The test makes more connections than there are slots. Each connection is
	// closed after its time limit, which frees a slot for the next one.
	done := make(chan error)
	for range 120 {
		go func() {
			c, err := net.Dial("tcp", g.addr)
			if err == nil {
				defer c.Close()
				c.SetReadDeadline(time.Now().Add(patience))
				if _, err = io.ReadAll(c); !errors.Is(err, os.ErrDeadlineExceeded) {
					err = nil
				}
			}
			done <- err
		}()
	}
	for range 120 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	g.await("connection refused", func(r map[string]any) bool { return strings.Contains(fmt.Sprint(r["because"]), "within 20ms") })
}
