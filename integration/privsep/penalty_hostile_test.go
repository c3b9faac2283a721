package privsep

import (
	"encoding/json"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// playIdle acts as a compromised worker that has no connection. It reports a
// false or malformed offence, or sends a message that workers may not send.
func playIdle(part string, c *ipc.Channel) {
	switch part {
	case "offence, unknown connection":
		c.Send(&work.Offence{ID: 1, Kind: work.BadCredential})
	case "invalid offence":
		sendRaw(ipc.KindOf(new(work.Offence)), 17, 0)
	case "truncated offence":
		sendRaw(ipc.KindOf(new(work.Offence)), 16, 0)
	case "offence with a descriptor":
		sendRaw(ipc.KindOf(new(work.Offence)), 17, 1)
	case "pause":
		sendRaw(ipc.KindOf(new(work.Pause)), 10, 0)
	}
}

// playPenalty acts as a compromised worker that has a connection.
func playPenalty(part string, c *ipc.Channel, fd int, id uint64) {
	if !strings.HasPrefix(part, "offence") && !strings.HasPrefix(part, "intent") {
		return
	}
	offence := &work.Offence{ID: id, Kind: work.BadCredential}
	if part != "offence before taken" {
		c.Send(&work.ConnectionTaken{ID: id})
	}
	switch part {
	case "offence before taken":
		c.Send(offence)
	case "offence of another":
		offence.ID++
		c.Send(offence)
	case "offence after closed":
		unix.Close(fd)
		c.Send(&work.ConnectionDone{ID: id})
		c.Send(offence)
	case "offences, endless":
		for c.Send(offence) == nil {
			offence.Credential++
		}
	case "offences": // no more offences than an honest worker may report
		for range 200 { // half of limit.WorkerOffences
			offence.Credential++
			c.Send(offence)
		}
	case "intent with long texts": // the longest texts that the protocol table permits, with bytes that are special in JSON and on terminals
		word := func(n int) string { return strings.Repeat("\n\"\\\x1b\xff\u2028", n)[:n] }
		long := &query.Intent{ID: 1 << 63, Connection: id, Request: word(1 << 10), Forwarded: word(1 << 10), User: word(1 << 10), UID: 0, Token: word(1 << 10), ActAs: word(1 << 10), Method: word(1 << 10), Route: word(1 << 10), Object: word(1 << 10), Fields: word(1 << 10)}
		c = auditor
		c.Send(long.Truncate())
		for {
			m, err := c.Receive()
			if noted, ok := m.Message.(*query.IntentDecision); err != nil || ok && noted.Decision == query.Granted {
				break
			}
		}
		end := &query.Outcome{ID: 1 << 63, Status: 65535, Code: word(1 << 10), Number: 1<<32 - 1, Result: word(1 << 10)}
		c.Send(end.Truncate())
	}
}

var strictAdmission = work.Admission{Auth: time.Second, Malformed: time.Second, Crash: time.Second, Threshold: 5 * time.Second}

// TestPenaltyLiars checks that a worker that sends a forbidden message about
// clients or changes is killed. The message must not block any client. There is
// one exception: if a worker reports too many offences, its own client may be
// blocked.
func TestPenaltyLiars(t *testing.T) {
	t.Parallel()
	tests := []struct {
		part, want string
		connect    bool
	}{
		{part: "offence, unknown connection", want: "Offence for connection 1, which it does not hold"},
		{part: "invalid offence", want: "has a kind of offence that is 0"},
		{part: "truncated offence", want: "has 16 bytes, not 17"},
		{part: "offence with a descriptor", want: "came with 1 descriptors"},
		{part: "pause", want: "may not be sent by the worker"},
		{part: "truncated intent", want: "has 39 bytes"},
		{part: "intent with trailing bytes", want: "Intent of the worker has bytes left over"},
		{part: "intent too long", want: "has 2051 bytes"},
		{part: "outcome too long", want: "has 1741 bytes"},
		{part: "endless outcomes", want: "which was not granted"},
		{part: "offence before taken", want: "which it does not hold", connect: true},
		{part: "offence of another", want: "which it does not hold", connect: true},
		{part: "offence after closed", want: "which it does not hold", connect: true},
		{part: "offences, endless", want: "Offence too often", connect: true},
	}
	for _, tt := range tests {
		t.Run(tt.part, func(t *testing.T) {
			as := plainUser(t)
			c := testConfig{Argv: argv{ipc.Worker: {tt.part}}, Workers: 1, Connections: 4, Audit: ipc.Audit{Path: auditDir(t, as)}}
			c.Setup = packed(work.Setup{Admission: strictAdmission})
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
			_ = g.cmd.Process.Signal(syscall.SIGTERM)
			g.wait()
			if lines := auditRecords(t, c.Audit.Path); len(lines) > 0 {
				t.Errorf("the audit log has %v", lines)
			}
			if n := g.count("source blocked"); n > 0 && tt.part != "offences, endless" {
				t.Errorf("%d sources have to wait", n)
			}
		})
	}
}

// TestFramed checks a worker that falsely reports offences. The worker's own
// client must be blocked, as after real offences. No other user may be blocked.
func TestFramed(t *testing.T) {
	t.Parallel()
	needRoot(t) // only root can act as several users
	c := testConfig{Argv: argv{ipc.Worker: {"offences"}}, Workers: 1, Connections: 4}
	c.Setup = packed(work.Setup{Admission: strictAdmission})
	g := serve(t, plainUser(t), c)
	conn, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r := g.await("source blocked", nil)
	if r["source"] != "uid 0" || r["pause"] != float64(time.Second) {
		t.Errorf("%v", r)
	}
	otherConn := g.dialTCPAs(t, 31002)
	text := make(chan string, 1)
	go func() {
		head, _ := io.ReadAll(io.LimitReader(otherConn, 12))
		text <- string(head)
	}()
	select {
	case got := <-text:
		t.Errorf("another user got %q", got)
	case <-time.After(100 * time.Millisecond): // this worker answers no request
	}
	if n := g.count("worker killed"); n > 0 {
		t.Error("it was killed for what it may say")
	}
}

// TestAuditLongWords checks how the audit log records a change whose texts are
// as long as the protocol table permits. The log gets two lines about the
// change. Both must still be JSON, and the texts may appear only in the object
// that contains the worker's values.
func TestAuditLongWords(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	path := auditDir(t, as)
	g := serve(t, as, testConfig{Argv: argv{ipc.Worker: {"intent with long texts"}}, Workers: 1, Audit: ipc.Audit{Path: path}})
	conn, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	lines := awaitAuditRecords(t, path, 2)
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, l := range lines {
		gateway, workerValues := l["gateway"].(map[string]any), l["worker"].(map[string]any)
		raw, err := json.Marshal(workerValues)
		if err != nil || len(l) != 5 || gateway["network"] != "tcp" || gateway["peer"] != conn.LocalAddr().String() || workerValues["uid"] != 0.0 || len(raw) < 1000 {
			t.Errorf("%v", l)
		}
	}
	if lines[1]["gateway"].(map[string]any)["ended"] != "reported" || lines[1]["worker"].(map[string]any)["status"] != 65535.0 {
		t.Errorf("%v", lines[1])
	}
}
