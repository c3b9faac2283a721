package privsep

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// TestKeepsConnections checks that the dispatcher replaces a worker that does
// not notice when its clients disconnect. The clients take all slots, so no
// other client could be served.
func TestKeepsConnections(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, network, path string
		hostile             bool // the worker ignores the request to finish
	}{
		{"TCP", "tcp", "/keep", false},
		{"UNIX", "unix", "/keep", false},
		{"does not exit", "tcp", "/", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := sharedDir(t)
			if as := plainUser(t); as != nil {
				must(t, os.Chown(dir, int(as.Uid), int(as.Gid)))
			}
			socket := filepath.Join(dir, "socket")
			c := testConfig{Listen: listens("127.0.0.1:0", "unix:"+socket), Workers: 1, Connections: 3, Silence: hangLimit}
			if tt.hostile {
				c.Argv = argv{ipc.Worker: {"first never reports closed", filepath.Join(dir, "mark")}}
			}
			limits := testLimits
			limits.Drain = time.Second
			c.Setup = packed(work.Setup{Limits: limits})
			g := serve(t, plainUser(t), c)
			addr := g.addr
			if tt.network == "unix" {
				addr = socket
			}
			for range c.Connections {
				client, err := net.Dial(tt.network, addr)
				must(t, err)
				client.SetDeadline(time.Now().Add(patience))
				fmt.Fprintf(client, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", tt.path)
				_, err = io.ReadFull(client, make([]byte, 12))
				must(t, err)
				if tcp, ok := client.(*net.TCPConn); ok {
					must(t, tcp.SetLinger(0))
				}
				client.Close()
			}
			g.mustGet("/pid") // waits until a slot is free
			r := g.await("worker replaced", nil)
			if r["worker"] != firstWorker || r["connections"].(float64) < 1 {
				t.Errorf("%v", r)
			}
			if tt.hostile {
				g.awaitReason("worker terminated", "was replaced and asked to finish, but still runs")
			} else {
				g.await("worker exited", func(r map[string]any) bool { return r["worker"] == firstWorker })
			}
			must(t, syscall.Kill(g.cmd.Process.Pid, syscall.SIGUSR1))
			r = g.await("counters", func(r map[string]any) bool { return r["workers"] != nil })
			if workers := r["workers"].(map[string]any); workers["replaced"] != 1.0 || workers["started"] != 2.0 {
				t.Errorf("%v", workers)
			}
			if held := r["connections"].(map[string]any)["held"].(float64); held > 1 { // the connection of mustGet may still be open
				t.Errorf("%v connections have a slot", held)
			}
		})
	}
}

// TestKeepsNothing checks that a worker is not replaced because of connections
// that are open, even if their clients have been silent for a long time, or
// have only shut down their sending side.
func TestKeepsNothing(t *testing.T) {
	t.Parallel()
	limits := testLimits
	limits.Drain = time.Millisecond
	g := serve(t, plainUser(t), testConfig{Workers: 1, Silence: hangLimit, Setup: packed(work.Setup{Limits: limits})})
	silent, half := g.dial(t, ""), g.dial(t, "GET /wait?ms=4000 HTTP/1.1\r\nHost: x\r\n\r\n")
	must(t, half.(*net.TCPConn).CloseWrite())
	if status, _, err := answer(half); err != nil || status != 200 { // three checks have passed
		t.Errorf("%d, %v", status, err)
	}
	stillOpen(t, silent, "a silent connection")
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.records {
		if r["msg"] == "worker replaced" {
			t.Errorf("%v", r)
		}
	}
}
