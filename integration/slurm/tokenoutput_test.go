package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
)

// TestTokenOutput checks that users with a token read the output and the scripts of
// their own jobs: a file in a directory that only a supplementary group may enter,
// with tokens of Slurm and with gateway tokens.
func TestTokenOutput(t *testing.T) {
	m := freshCluster(t)
	version := map[string]string{"22.05": "v0.0.45"}[m.release]
	if version == "" {
		version = newest[m.release]
	}
	m.run(t, "root", "sh", "-c", "groupadd -f team && usermod -aG team alice && rm -rf /srv/team && install -d -m 0770 -g team /srv/team")
	_, issue := setUpGatewayTokens(t, m, func() {})
	m.giveKey(t, "jwt_hs256.key")
	m.start(t, "gateway", gatewaySocket, []string{"SLURM_JWT=daemon", "SCHEDRESTD_OUTPUT=tokens", "SCHEDRESTD_TOKEN_REGISTER=/etc/slurm/tokens"},
		"/opt/gateway/schedrestd", "-v", "-f", m.conf(), "-u", "nobody", "-g", "nogroup", "unix:"+gatewaySocket)
	must(t, os.Chmod(filepath.Join(m.root, gatewaySocket), 0o666))
	gateway := m.client(gatewaySocket)
	send := func(token, method, path, body string) answer {
		t.Helper()
		a, err := sendRequest(gateway, method, "/sched/"+version+"/job/"+path, body, "X-SLURM-USER-TOKEN: "+token)
		must(t, err)
		return a
	}
	tokens := map[string]string{}
	for _, user := range []string{"alice", "bob", "root"} {
		tokens[user] = strings.TrimPrefix(strings.TrimSpace(m.run(t, "root", "scontrol", "token", "username="+user)), "SLURM_JWT=")
	}
	tokens["alice's reader"], _ = issue(gatewaytoken.Token{User: "alice", Scopes: scope.ComputeRead})
	tokens["alice's accountant"], _ = issue(gatewaytoken.Token{User: "alice", Scopes: scope.SlurmdbRead})
	const script = "#!/bin/sh\nid -un\nsrun -o step-%J echo a step\nsleep 600\n"
	body, err := json.Marshal(map[string]any{"job": map[string]any{"script": script, "name": "out", "account": "physics", "current_working_directory": "/srv/team", "environment": []string{"PATH=/usr/bin:/bin"}}})
	must(t, err)
	var submitted struct {
		ID int `json:"job_id"`
	}
	if a := send(tokens["alice"], "POST", "submit", string(body)); a.status != http.StatusOK || json.Unmarshal(a.body, &submitted) != nil {
		t.Fatalf("status %d: %s", a.status, a.body)
	}
	id := fmt.Sprint(submitted.ID)
	eventually(t, "the job writes", func() bool { return string(send(tokens["alice"], "GET", id+"/stdout", "").body) == "alice\n" })
	for _, tt := range []struct {
		token, file string
		status      int
		want        string
	}{
		{"alice", "stdout", 200, "alice\n"},
		{"alice", "script", 200, script},
		{"alice's reader", "stdout", 200, "alice\n"},
		{"alice's reader", "script", 200, script},
		{"alice's accountant", "stdout", 403, "compute.read"},
		{"bob", "stdout", 403, "only the user of a job"},
		{"bob", "script", 403, ""},
		{"root", "stdout", 403, "no output is read for the user of this token"},
		{"root", "script", 200, script}, // as scontrol write batch_script
	} {
		if a := send(tokens[tt.token], "GET", id+"/"+tt.file, ""); a.status != tt.status || !strings.Contains(string(a.body), tt.want) {
			t.Errorf("%s, %s: status %d: %.300s", tt.token, tt.file, a.status, a.body)
		}
	}
	if m.release == "26.05" { // accounting names the files of steps from 25.05 on
		eventually(t, "the step's output is read", func() bool { return string(send(tokens["alice"], "GET", id+"/stdout?step=0", "").body) == "a step\n" })
		if a := send(tokens["bob"], "GET", id+"/stdout?step=0", ""); a.status != 403 {
			t.Errorf("bob reads a step: status %d: %.300s", a.status, a.body)
		}
	}
	if out := m.run(t, "alice", "scontrol", "write", "batch_script", id, "-"); strings.TrimRight(out, "\n") != strings.TrimRight(script, "\n") {
		t.Errorf("scontrol writes %q", out)
	}
	out, err := m.try("root", "sh", "-c", "ps -o user:20=,group:20=,supgrp:40= -C schedrestd-outp | sort -u")
	if fields := strings.Fields(out); err != nil || len(fields) != 3 || fields[0] != "alice" || !strings.Contains(fields[2], "team") {
		t.Errorf("processes: %v\n%s", err, out)
	}
	send(tokens["alice"], "DELETE", id, "")
}
