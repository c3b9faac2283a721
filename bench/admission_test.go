package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/bundled/demo/site"
)

var admission = &comparison{title: fmt.Sprintf("admission and audit log, median of paired rounds, %d clients", clients), columns: []string{"with", "without"}}

func init() { tables = append(tables, admission) }

// BenchmarkAdmission measures the cost of the penalties and the request rate
// limit while they restrict no client.
func BenchmarkAdmission(b *testing.B) {
	l := theLab.open(b)
	servers := []server{l.startGateway(b, "admitting", "SCHEDRESTD_RATE=1000000:1000000"), l.startGateway(b, "open", "SCHEDRESTD_PENALTIES=off")}
	ping := get("/sched/v0.0.43/ping")
	b.Run("kept", func(b *testing.B) {
		compare(b, admission, "ping, kept alive, penalties and rate limit", servers, load{request: ping, keepAlive: true, count: 2000})
	})
	b.Run("each", func(b *testing.B) {
		compare(b, admission, "ping, a new connection per request, penalties and rate limit", servers, load{request: ping, count: 1000})
	})
}

// BenchmarkAudit measures the cost of recording changes in the audit log. For
// each change, the worker sends two messages to the auditor, which writes two
// lines to the log. With SCHEDRESTD_AUDIT_SYNC, the cost includes waiting for
// the disk.
func BenchmarkAudit(b *testing.B) {
	l := theLab.open(b)
	l.occupyNode(b)
	log := func(name string) string {
		dir := filepath.Join(l.Dir, name)
		must(b, os.MkdirAll(dir, 0o700))
		return "SCHEDRESTD_AUDIT_LOG=" + filepath.Join(dir, "log")
	}
	without := l.startGateway(b, "unrecorded")
	for _, x := range []struct {
		name    string
		audited server
	}{
		{"submit, kept alive, audit log", l.startGateway(b, "recorded", log("audit"))},
		{"submit, kept alive, audit log with SYNC", l.startGateway(b, "synced", log("audit-synced"), "SCHEDRESTD_AUDIT_SYNC=yes")},
	} {
		b.Run(x.name, func(b *testing.B) {
			compare(b, admission, x.name, []server{x.audited, without}, load{request: post("/sched/v0.0.43/job/submit", l.waitingJob()), keepAlive: true, count: 40, after: l.cancelWaiting})
		})
	}
}

// startGateway starts a gateway with additional environment variables.
func (l *lab) startGateway(b *testing.B, name string, env ...string) server {
	b.Helper()
	return l.startBuild(b, l.bin, name, env...)
}

// startBuild starts a gateway from the programs in the directory bin, with
// additional environment variables.
func (l *lab) startBuild(b *testing.B, bin, name string, env ...string) server {
	b.Helper()
	ports, err := site.FreePorts(1)
	must(b, err)
	part := l.Schedrestd(bin, fmt.Sprintf("127.0.0.1:%d", ports[0]))
	part.Log, part.Name = l.Log(name), name
	part.Env = append(part.Env[:len(part.Env):len(part.Env)], env...)
	d := l.start(b, part)
	b.Cleanup(func() { _ = d.Stop() })
	return newServer(b, d, tcpDialer(strings.TrimPrefix(d.Address, "http://")))
}
