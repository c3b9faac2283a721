package gateway

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"schedrestd/integration/harness"
)

// TestScopes checks that clients of an address with scopes can do nothing else,
// on reused connections, too, and that those of other addresses can do
// everything. The gateway must not start if it does not listen on an address
// that has scopes.
func TestScopes(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	open, reads, creates := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
	path := filepath.Join(harness.SocketDir(t, l), "s")
	g := l.StartGateway(t, []string{"SCHEDRESTD_SCOPES=compute.create=" + creates}, open, "compute.read=unix:"+path, "compute.read+slurmdb.read="+reads, creates)

	send := func(address, method, path, body string) harness.Answer {
		t.Helper()
		network := "tcp"
		if strings.HasPrefix(address, "/") {
			network = "unix"
		}
		c := harness.NewClient(func() (net.Conn, error) { return net.Dial(network, address) })
		c.Transport.(*http.Transport).DisableKeepAlives = false
		defer c.CloseIdleConnections()
		var a harness.Answer
		for range 2 {
			var err error
			a, err = l.TryRequest(c, method, path, body)
			harness.Must(t, err)
		}
		return a
	}
	job := l.JobRequest("#!/bin/sh\n", map[string]any{"hold": true})
	for _, tt := range []struct {
		address, method, path, body string
		scope                       string // that is missing; "" for none
	}{
		{open, "POST", "/sched/v0.0.43/job/submit", job, ""},
		{open, "GET", "/sched/v0.0.43/jobs/", "", ""},
		{creates, "POST", "/sched/v0.0.43/job/submit", job, ""},
		{creates, "GET", "/sched/v0.0.43/jobs/", "", "compute.read"},
		{creates, "GET", "/sched/v0.0.41/job/1", "", "compute.read"},
		{reads, "GET", "/sched/v0.0.43/jobs/", "", ""},
		{reads, "GET", "/scheddb/v0.0.43/accounts/", "", ""},
		{reads, "POST", "/sched/v0.0.43/job/submit", job, "compute.create"},
		{reads, "POST", "/sched/v0.0.43/job/1", `{"priority":1}`, "compute.modify"},
		{reads, "DELETE", "/sched/v0.0.43/job/1", "", "compute.cancel"},
		{reads, "GET", "/sched/v0.0.46/job/1/requeue", "", "compute.modify"},
		{reads, "GET", "/sched/v0.0.43/reconfigure/", "", "cluster.admin"},
		{reads, "POST", "/scheddb/v0.0.43/accounts/", `{"accounts":[]}`, "slurmdb.write"},
		{path, "GET", "/sched/v0.0.43/jobs/", "", ""},
		{path, "GET", "/scheddb/v0.0.43/accounts/", "", "slurmdb.read"},
		{path, "DELETE", "/sched/v0.0.43/job/1", "", "compute.cancel"},
	} {
		a := send(tt.address, tt.method, tt.path, tt.body)
		has := map[string]string{creates: "compute.create", reads: "compute.read, slurmdb.read", path: "compute.read"}[tt.address]
		if got := a.Header.Get("X-OAuth-Scopes"); got != has {
			t.Errorf("%s %s at %s: scopes %q, want %q", tt.method, tt.path, tt.address, got, has)
		}
		if tt.scope == "" {
			a.Want(t, http.StatusOK)
			continue
		}
		a.Want(t, http.StatusForbidden)
		if got := a.Header.Get("WWW-Authenticate"); !strings.Contains(got, `error="insufficient_scope", scope="`+tt.scope+`"`) {
			t.Errorf("%s %s at %s: %q", tt.method, tt.path, tt.address, got)
		}
	}
	if a := send(reads, "GET", "/openapi.json", ""); a.Status != http.StatusOK || !strings.Contains(a.Text, `"x-scope"`) {
		t.Errorf("the document: %d, %.200s", a.Status, a.Text)
	}
	if os.Geteuid() == 0 {
		if a := send(open, "GET", "/readyz?verbose", ""); !strings.Contains(a.Text, "scopes: compute.read+slurmdb.read="+reads+"\n") {
			t.Errorf("/readyz?verbose: %d, %s", a.Status, a.Text)
		}
	}
	for _, entry := range []string{"compute.create=" + creates, "compute.read=unix:" + path} {
		if !strings.Contains(g.Logged(), entry) {
			t.Errorf("the log does not have %s", entry)
		}
	}
	log := l.FailsToStart(t, nil, []string{"SCHEDRESTD_SCOPES=compute.read=127.0.0.1:1"}, append(slices.Clone(l.Restd.Args[:len(l.Restd.Args)-1]), fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)))...)
	if !strings.Contains(log, "does not listen on 127.0.0.1:1, which has scopes") || !strings.Contains(log, "correct SCHEDRESTD_SCOPES") {
		t.Errorf("an address without a listener:\n%s", log)
	}
}
