package slurm

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
)

// setUpGatewayTokens changes the cluster as the manual says, so that a gateway can accept
// gateway tokens, and returns the path of the register and a function that creates
// tokens. The argument before is called before the changes.
func setUpGatewayTokens(t *testing.T, m *machine, before func()) (register string, create func(gatewaytoken.Token) (token, id string)) {
	t.Helper()
	file := filepath.Join(m.root, "etc/slurm/slurm.conf")
	text, err := os.ReadFile(file)
	must(t, err)
	t.Cleanup(func() { must(t, os.WriteFile(file, text, 0)) })
	register = filepath.Join(m.root, "etc/slurm/tokens")
	must(t, os.WriteFile(register, nil, 0o644))
	before()
	must(t, os.WriteFile(file, []byte(strings.Replace(string(text), "AuthAltParameters=", "AuthAltParameters=disable_token_creation,", 1)), 0))
	m.restartController(t)
	key, err := os.ReadFile(filepath.Join(m.root, "etc/slurm/jwt_hs256.key"))
	must(t, err)
	cluster := ""
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "ClusterName="); ok {
			cluster = name
		}
	}
	return register, func(gt gatewaytoken.Token) (token, id string) {
		t.Helper()
		now := time.Now().UTC().Truncate(time.Second)
		gt.Cluster, gt.Issued, gt.Expires, gt.ID = cluster, now, now.Add(time.Hour), gatewaytoken.NewID()
		token, err := gatewaytoken.Sign(gt, key)
		must(t, err)
		return token, gt.ID
	}
}

// giveKey lets the gateway read a key of the cluster, as in KEYS.md.
func (m *machine) giveKey(t *testing.T, name string) {
	t.Helper()
	path := "/etc/slurm/" + name
	m.run(t, "root", "chown", "root:slurm", path)
	m.run(t, "root", "chmod", "0440", path)
	t.Cleanup(func() {
		m.run(t, "root", "chmod", "0600", path)
		m.run(t, "root", "chown", "slurm:slurm", path)
	})
}

// TestGatewayTokens checks against real daemons what gateway tokens permit: the
// daemons and Slurm's gateway refuse them, each scope permits the operations of its
// kind and no others, and a revoked token permits nothing within a second.
func TestGatewayTokens(t *testing.T) {
	m := freshCluster(t)
	fails := func(want string) {
		t.Helper()
		out, err := m.try("root", "timeout", "60", "env", "SLURM_JWT=daemon", "SCHEDRESTD_TOKEN_REGISTER=/etc/slurm/tokens",
			"/opt/gateway/schedrestd", "-f", m.conf(), "-u", "nobody", "-g", "nogroup", "unix:"+gatewaySocket)
		if err == nil || !strings.Contains(out+err.Error(), want) {
			t.Errorf("the gateway starts without %q: %v %.300s", want, err, out)
		}
	}
	register, issue := setUpGatewayTokens(t, m, func() { fails("exchange") }) // a bearer for a longer token
	fails("can't read the key of the cluster")
	m.giveKey(t, "jwt_hs256.key")
	m.reference(t)
	// The keeper gets no credentials for the cluster's own user.
	m.run(t, "slurm", "sacctmgr", "-i", "-Q", "add", "user", "rest", "account=physics", "adminlevel=administrator")
	for _, mode := range []string{"bearer", "bound"} {
		t.Run(mode, func(t *testing.T) {
			must(t, os.WriteFile(register, nil, 0o644))
			m.start(t, "gateway", gatewaySocket, []string{"SLURM_JWT=daemon", "SCHEDRESTD_TOKEN_REGISTER=/etc/slurm/tokens", "SCHEDRESTD_TOKEN_MODE=" + mode},
				"/opt/gateway/schedrestd", "-v", "-f", m.conf(), "-u", "nobody", "-g", "nogroup", "unix:"+gatewaySocket)
			m.checkGatewayTokens(t, register, issue)
		})
	}
}

// checkGatewayTokens checks what tokens that issue makes permit at a running gateway.
func (m *machine) checkGatewayTokens(t *testing.T, register string, issue func(gatewaytoken.Token) (token, id string)) {
	create := func(user string, scopes scope.Set) (token, id string) {
		t.Helper()
		return issue(gatewaytoken.Token{User: user, Scopes: scopes})
	}
	gateway := m.client(gatewaySocket)
	send := func(c *http.Client, token, method, path, body string) answer {
		t.Helper()
		a, err := sendRequest(c, method, path, body, "X-SLURM-USER-TOKEN: "+token)
		must(t, err)
		return a
	}

	token, _ := create("alice", scope.All)
	if out, err := m.try("alice", "env", "SLURM_JWT="+token, "squeue"); err == nil {
		t.Errorf("slurmctld accepts a gateway token: %s", out)
	}
	if a := send(m.client(referenceSocket), token, "GET", "/slurm/v0.0.41/jobs/", ""); a.status == http.StatusOK {
		t.Errorf("slurmrestd accepts a gateway token: %.300s", a.body)
	}

	version := "v0.0." + map[bool]string{true: "41", false: "42"}[strings.HasPrefix(m.release, "24.")]
	job := `{"script":"#!/bin/sh\nsleep 600\n","job":{"account":"physics","current_working_directory":"/tmp","environment":["PATH=/bin:/usr/bin"]}}`
	operations := []struct {
		scope              scope.Set
		method, path, body string
	}{
		{scope.ComputeRead, "GET", "/slurm/" + version + "/jobs/", ""},
		{scope.ComputeCreate, "POST", "/slurm/" + version + "/job/submit", job},
		{scope.ComputeModify, "POST", "/slurm/" + version + "/job/JOB", `{"comment":"changed"}`},
		{scope.ComputeCancel, "DELETE", "/slurm/" + version + "/job/JOB", ""},
		{scope.SlurmdbRead, "GET", "/slurmdb/" + version + "/users/", ""},
		{scope.SlurmdbWrite, "POST", "/slurmdb/" + version + "/accounts/", `{"accounts":[{"name":"made","description":"d","organization":"o"}]}`},
		{scope.ClusterAdmin, "GET", "/slurm/" + version + "/reconfigure/", ""},
	}
	for _, granted := range operations {
		token, _ := create("rest", granted.scope)
		if granted.scope == scope.ComputeModify || granted.scope == scope.ComputeCancel || granted.scope == scope.ComputeCreate {
			token, _ = create("alice", granted.scope)
		}
		for _, tt := range operations {
			id := ""
			if strings.Contains(tt.path, "JOB") {
				id = strings.TrimSpace(m.run(t, "alice", "sbatch", "--parsable", "-A", "physics", "--wrap", "sleep 600"))
			}
			want := http.StatusForbidden
			if tt.scope == granted.scope {
				want = http.StatusOK
			}
			if a := send(gateway, token, tt.method, strings.Replace(tt.path, "JOB", id, 1), tt.body); a.status != want {
				t.Errorf("%s, %s %s: %d, want %d: %.300s", granted.scope, tt.method, tt.path, a.status, want, a.body)
			}
		}
	}

	// The daemons know the user, whose rights stay what they are.
	token, id := create("bob", scope.All)
	if a := send(gateway, token, "GET", "/slurm/"+version+"/reconfigure/", ""); a.status == http.StatusOK {
		t.Error("bob may reconfigure the controller")
	}
	if a := send(gateway, token, "POST", "/slurm/"+version+"/job/submit", job); a.status == http.StatusForbidden {
		t.Errorf("bob may not submit: %.300s", a.body)
	}
	must(t, os.WriteFile(register, []byte(gatewaytoken.RevokeToken(id)), 0o644))
	begun := time.Now()
	for send(gateway, token, "GET", "/slurm/"+version+"/jobs/", "").status != http.StatusUnauthorized {
		if time.Since(begun) > time.Minute {
			t.Fatal("the token is not revoked after a minute")
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("revoked after %v", time.Since(begun).Round(time.Millisecond))
}
