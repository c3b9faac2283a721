package privsep

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// TestRulesThatRuleNothing checks that the gateway, when it starts, logs each
// setting that switches off more than its name suggests.
var auditor *ipc.Channel

// playUnasked acts as a compromised worker that has no connection, and sends
// messages to the auditor on descriptor fd.
func playUnasked(part string, fd int) {
	switch part {
	case "intent, unknown connection":
		sendRawTo(fd, ipc.KindOf(new(query.Intent)), 40, 0)
	case "outcome, unknown change":
		sendRawTo(fd, ipc.KindOf(new(query.Outcome)), 21, 0)
	case "decision":
		sendRawTo(fd, ipc.KindOf(new(query.IntentDecision)), 12, 0)
	case "forged facts":
		sendRawTo(fd, ipc.KindOf(new(work.ConnectionFacts)), 31, 0)
	case "forged log file":
		sendRawTo(fd, ipc.KindOf(new(ipc.LogFD)), 5, 1)
	case "exit of another worker":
		sendRawTo(fd, ipc.KindOf(new(work.WorkerExited)), 6, 0)
	case "truncated intent":
		sendRawTo(fd, ipc.KindOf(new(query.Intent)), 39, 0)
	case "intent with trailing bytes":
		sendRawTo(fd, ipc.KindOf(new(query.Intent)), 41, 0)
	case "intent too long":
		sendRawTo(fd, ipc.KindOf(new(query.Intent)), 2051, 0)
	case "outcome too long":
		sendRawTo(fd, ipc.KindOf(new(query.Outcome)), 1741, 0)
	case "endless outcomes":
		for auditor.Send(&query.Outcome{ID: 1}) == nil {
		}
	}
}

// playAudit acts as a compromised worker that has a connection and reports
// false changes.
func playAudit(part string, c *ipc.Channel, id uint64) {
	c.Send(&work.ConnectionTaken{ID: id})
	c = auditor
	falseIntent := &query.Intent{ID: 1, Connection: id, Request: "r", User: "root\"}\n{\"event\":\"outcome\"", UID: 0, Method: "POST", Route: "\x1b[2J\xff", Object: "\u202e"}
	awaitGrant := func() { // waits until the auditor permits the change
		c.Send(falseIntent)
		for {
			m, err := c.Receive()
			if noted, ok := m.Message.(*query.IntentDecision); err != nil || ok && noted.Decision == query.Granted {
				return
			}
		}
	}
	switch part {
	case "intent of another":
		falseIntent.Connection++
		c.Send(falseIntent)
	case "intent twice":
		c.Send(falseIntent)
		c.Send(falseIntent)
	case "endless intents":
		for c.Send(falseIntent) == nil {
			falseIntent.ID++
		}
	case "outcome before permission":
		c.Send(&query.Outcome{ID: 1})
	case "outcome twice":
		awaitGrant()
		c.Send(&query.Outcome{ID: 1, Status: 200, Code: "ok"})
		c.Send(&query.Outcome{ID: 1, Status: 200, Code: "ok"})
	case "intent, then killed":
		awaitGrant()
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "outcome with forged text":
		awaitGrant()
		c.Send(&query.Outcome{ID: 1, Status: 200, Code: "\"}}\n", Result: "\x00"})
	}
}

// auditDir returns a directory for the audit log of a parent that runs as the
// given user.
func auditDir(t *testing.T, as user) string {
	t.Helper()
	dir := filepath.Join(sharedDir(t), "audit")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if as != nil {
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "log")
}

// TestAuditLiars checks that a worker is killed if it sends a forbidden message
// to the auditor, or a message about a change to the dispatcher. A message about a
// connection that the worker does not have must leave no line in the audit log.
func TestAuditLiars(t *testing.T) {
	t.Parallel()
	const connections = 4
	tests := []struct {
		part, want string
		connect    bool
		lines      int // in the log: two for each change
	}{
		{part: "intent, unknown connection", want: "Intent for connection 0, which never existed"},
		{part: "intent to the dispatcher", want: "Intent of the worker may not be sent by the worker to the dispatcher"},
		{part: "outcome, unknown change", want: "which was not granted"},
		{part: "decision", want: "may not be sent by the worker"},
		{part: "forged facts", want: "ConnectionFacts of the worker may not be sent by the worker to the auditor"},
		{part: "forged log file", want: "LogFD of the worker may not be sent by the worker to the auditor"},
		{part: "exit of another worker", want: "WorkerExited of the worker may not be sent by the worker to the auditor"},
		{part: "intent of another", want: "which never existed", connect: true},
		{part: "intent twice", want: "Intent 1 twice", connect: true, lines: 2},
		{part: "endless intents", want: "more changes than it can have requests", connect: true, lines: 2 * (2*connections + 16)}, // two lines for each change that a worker may have open
		{part: "outcome before permission", want: "was not granted", connect: true},
		{part: "outcome twice", want: "was not granted", connect: true, lines: 2},
	}
	for _, tt := range tests {
		t.Run(tt.part, func(t *testing.T) {
			as := plainUser(t)
			c := testConfig{Argv: argv{ipc.Worker: {tt.part}}, Workers: 1, Connections: connections, Audit: ipc.Audit{Path: auditDir(t, as)}}
			g := launch(t, as, c)
			if tt.connect {
				r := g.await("serving", nil)
				conn, err := net.Dial("tcp", r["listen"].([]any)[0].(string))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
			}
			g.awaitReason("worker killed", tt.want)
			_ = g.cmd.Process.Signal(syscall.SIGTERM) // the gateway exits once every line is written
			g.wait()
			lines := auditRecords(t, c.Audit.Path)
			if len(lines) != tt.lines {
				t.Errorf("%d lines, want %d", len(lines), tt.lines)
			}
			ended := map[any]int{}
			for _, l := range lines {
				if l["event"] == "outcome" {
					ended[l["change"]]++
				}
			}
			for _, l := range lines {
				if ended[l["change"]] != 1 {
					t.Errorf("%v has %d outcomes", l["change"], ended[l["change"]])
				}
			}
		})
	}
}

// auditRecords reads an audit log and requires that each line is JSON.
func auditRecords(t *testing.T, path string) (list []map[string]any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		list = append(list, one)
	}
	return list
}

// awaitAuditRecords waits until an audit log has n lines, and returns all its
// lines. A line without a line feed is still being written.
func awaitAuditRecords(t *testing.T, path string, n int) []map[string]any {
	t.Helper()
	await(t, fmt.Sprintf("the audit log has %d lines", n), func() bool {
		raw, _ := os.ReadFile(path)
		return strings.Count(string(raw), "\n") >= n
	})
	return auditRecords(t, path)
}

// TestAuditOrphan checks the log record of a change when the worker crashes or
// sends a false outcome. The record's object "gateway" must say how the change
// really ended. Values that the worker sent must be in the separate object
// "worker".
func TestAuditOrphan(t *testing.T) {
	t.Parallel()
	for part, ended := range map[string]string{"intent, then killed": "unknown", "outcome with forged text": "reported"} {
		t.Run(part, func(t *testing.T) {
			as := plainUser(t)
			path := auditDir(t, as)
			g := serve(t, as, testConfig{Argv: argv{ipc.Worker: {part}}, Workers: 1, Audit: ipc.Audit{Path: path, Sync: true}})
			conn, err := net.Dial("tcp", g.addr)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for i, l := range awaitAuditRecords(t, path, 2)[:2] {
				gateway, workerValues := l["gateway"].(map[string]any), l["worker"].(map[string]any)
				if want := []string{"intent", "outcome"}[i]; l["event"] != want || gateway["peer"] != conn.LocalAddr().String() || workerValues["user"] != "root\"}\n{\"event\":\"outcome\"" || workerValues["uid"] != 0.0 {
					t.Errorf("%v", l)
				}
				if i == 1 && gateway["ended"] != ended {
					t.Errorf("ended %v, want %s", gateway["ended"], ended)
				}
			}
		})
	}
}
