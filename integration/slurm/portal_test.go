package slurm

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
)

// TestPortalToken checks against real daemons for whom the token of a portal acts:
// for the members of its group, but not for SlurmUser, operators, and members who
// have left.
func TestPortalToken(t *testing.T) {
	m := freshCluster(t)
	register, issue := setUpGatewayTokens(t, m, func() {})
	m.giveKey(t, "jwt_hs256.key")
	for _, name := range []string{"passwd", "group", "shadow", "gshadow"} {
		file := filepath.Join(m.root, "etc", name)
		text, err := os.ReadFile(file)
		must(t, err)
		info, err := os.Stat(file)
		must(t, err)
		t.Cleanup(func() { must(t, os.WriteFile(file, text, info.Mode())) })
	}
	m.run(t, "root", "groupadd", "-f", "students")
	for _, user := range []string{"alice", "slurm"} {
		m.run(t, "root", "gpasswd", "-a", user, "students")
	}
	m.start(t, "gateway", gatewaySocket, []string{"SLURM_JWT=daemon", "SCHEDRESTD_TOKEN_REGISTER=/etc/slurm/tokens"},
		"/opt/gateway/schedrestd", "-v", "-f", m.conf(), "-u", "nobody", "-g", "nogroup", "unix:"+gatewaySocket)
	token, id := issue(gatewaytoken.Token{User: "rest", ActFor: "students", Scopes: scope.ComputeRead | scope.ComputeCreate | scope.SlurmdbRead})
	gateway := m.client(gatewaySocket)
	version := "v0.0." + map[bool]string{true: "41", false: "42"}[strings.HasPrefix(m.release, "24.")]
	jobs := "/slurm/" + version + "/jobs/"
	send := func(user, method, path, body string) answer {
		t.Helper()
		a, err := sendRequest(gateway, method, path, body, "X-SLURM-USER-TOKEN: "+token, "X-SLURM-USER-NAME: "+user)
		must(t, err)
		return a
	}
	for user, want := range map[string]int{"alice": 200, "bob": 403, "slurm": 403, "root": 403, "nobody": 403, "0": 403, "20001": 403, "nobody-has-this-name": 403} {
		if a := send(user, "GET", jobs, ""); a.status != want {
			t.Errorf("%s: %d %.300s", user, a.status, a.body)
		}
	}
	if a := send("alice", "GET", "/slurmdb/"+version+"/users/", ""); a.status != 200 {
		t.Errorf("accounting: %d %.300s", a.status, a.body)
	}
	a := send("alice", "POST", "/slurm/"+version+"/job/submit", `{"script":"#!/bin/sh\nsleep 600\n","job":{"account":"physics","current_working_directory":"/tmp","environment":["PATH=/bin:/usr/bin"]}}`)
	if a.status != 200 {
		t.Fatalf("submitted: %d %.300s", a.status, a.body)
	}
	if list := m.run(t, "alice", "squeue", "-h", "-o", "%u"); list != "alice" {
		t.Errorf("the job is that of %q", list)
	}
	m.run(t, "alice", "scancel", "-u", "alice")

	until := func(what string, limit time.Duration, done func() bool) {
		t.Helper()
		begun := time.Now()
		for !done() {
			if time.Since(begun) > limit {
				t.Fatalf("not after %v: %s", limit, what)
			}
			time.Sleep(100 * time.Millisecond)
		}
		t.Logf("after %v: %s", time.Since(begun).Round(time.Millisecond), what)
	}
	m.run(t, "root", "sacctmgr", "-i", "-Q", "modify", "user", "bob", "set", "adminlevel=operator")
	m.run(t, "root", "gpasswd", "-a", "bob", "students")
	log := filepath.Join(m.root, "var/log/slurm/gateway.log")
	until("an operator who is a member is refused", time.Minute, func() bool {
		if a := send("bob", "GET", jobs, ""); a.status != 403 {
			t.Fatalf("an operator: %d %.300s", a.status, a.body)
		}
		text, err := os.ReadFile(log)
		must(t, err)
		return strings.Contains(string(text), "an operator or administrator of the accounting database")
	})
	m.run(t, "root", "sacctmgr", "-i", "-Q", "modify", "user", "bob", "set", "adminlevel=none")
	until("a member who is no operator is served", time.Minute, func() bool { return send("bob", "GET", jobs, "").status == 200 })

	// A member who leaves the group.
	r, err := http.NewRequest("GET", "http://gateway"+jobs, nil)
	must(t, err)
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("X-SLURM-USER-TOKEN", token)
	r.Header.Set("X-SLURM-USER-NAME", "alice")
	stream, err := gateway.Do(r)
	must(t, err)
	defer stream.Body.Close()
	if stream.StatusCode != 200 {
		t.Fatalf("stream: %d", stream.StatusCode)
	}
	m.run(t, "root", "gpasswd", "-d", "alice", "students")
	begun := time.Now()
	text, _ := io.ReadAll(stream.Body)
	if took := time.Since(begun); took > time.Minute || !strings.Contains(string(text), "the gateway token no longer acts for this user") {
		t.Errorf("the stream ended after %v with %q", took, text[max(0, len(text)-300):])
	}
	t.Logf("the stream ended after %v", time.Since(begun).Round(time.Millisecond))
	if a := send("alice", "GET", jobs, ""); a.status != 403 {
		t.Errorf("alice has left the group: %d", a.status)
	}
	must(t, os.WriteFile(register, []byte(gatewaytoken.RevokeToken(id)), 0o644))
	until("the token is revoked", 10*time.Second, func() bool { return send("bob", "GET", jobs, "").status == 401 })
	if out, err := m.try("alice", "env", "SLURM_JWT="+token, "squeue"); err == nil {
		t.Errorf("slurmctld accepts the token: %s", out)
	}
}
