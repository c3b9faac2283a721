package privsep

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"schedrestd/gateway/dispatcher"
	"schedrestd/ipc"
	"strconv"
	"strings"
	"testing"

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
		{part: "early", want: "ConnectionDone of the worker is not permitted while proving"},
		{part: "unknown kind", want: "kind 99 of the worker is not in the protocol table"},
		{part: "dial of an unconfigured daemon", want: "which the configuration does not have"},
		{part: "a dispatcher's message", want: "Drain of the worker may not be sent by the worker"},
		{part: "ready twice", want: "Ready of the worker is not permitted while serving"},
		{part: "closed, unknown connection", want: "which it does not hold"},
		{part: "verify", want: "may not be sent by the worker to the dispatcher"},
		{part: "verified", want: "Verified of the worker may not be sent by the worker to the dispatcher"},
		{part: "public keys", want: "Keys of the worker may not be sent by the worker to the dispatcher"},
		{part: "secret keys", want: "SecretKeys of the worker may not be sent by the worker to the dispatcher"},
		{part: "trailing bytes", want: "has 9 bytes, not 8"},
		{part: "oversized", want: "longer than"},
		{part: "descriptor", want: "came with 1 descriptors"},
		{part: "descriptors", want: "cut off"},
		{part: "unrequested pong", want: "which was not requested"},
		{part: "closed before taken", want: "which it does not hold", connect: true},
		{part: "taken twice", want: "which it was not given", connect: true},
		{part: "closed twice", want: "which it does not hold", connect: true},
		{part: "closed, connection of another", want: "which it does not hold", connect: true},
		{part: "progress, unknown connection", want: "Progress for connection 1, which it does not hold"},
		{part: "invalid stage", want: "has a stage that is 0"},
		{part: "progress before taken", want: "which it does not hold", connect: true},
		{part: "progress of another", want: "which it does not hold", connect: true},
		{part: "progress after closed", want: "which it does not hold", connect: true},
		{part: "progress twice", want: "reported twice", connect: true},
		{part: "endless progress", want: "Progress too often", connect: true},
	}
	for _, tt := range tests {
		t.Run(tt.part, func(t *testing.T) {
			// The rate of reports depends on the number of connections. A
			// worker on a busy machine must be able to exceed it.
			g := launch(t, plainUser(t), testConfig{Argv: argv{ipc.Worker: {tt.part}}, Workers: 1, Connections: 4})
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
