package slurm

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"schedrestd/bundled/demo/thread"
)

// clientAs returns a client that connects to a socket of the machine with the
// given uid and gid. The kernel reports these ids to the gateway.
func (m *machine) clientAs(uid, gid uint32, socket string) *http.Client {
	path := filepath.Join(m.root, socket)
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return thread.DialAs(uid, gid, path) },
	}}
}

// users are accounts of the machine.
var users = []struct {
	name string
	id   uint32 // both uid and gid
}{{"alice", 20001}, {"bob", 20002}}

// submission returns a job that writes its user's name to the file output.
func submission(output string) string {
	text, _ := json.Marshal(map[string]any{
		"script": "#!/bin/sh\nid -un\n",
		"job": map[string]any{"name": "who", "current_working_directory": "/tmp", "standard_output": output,
			"environment": []string{"PATH=/usr/bin:/bin"}},
	})
	return string(text)
}

// submitJob submits a job and returns its number.
func submitJob(t *testing.T, c *http.Client, output string, headers ...string) string {
	t.Helper()
	a, err := sendRequest(c, "POST", "/slurm/v0.0.42/job/submit", submission(output), headers...)
	must(t, err)
	var body struct {
		JobID int `json:"job_id"`
	}
	if err := json.Unmarshal(a.body, &body); err != nil || a.status != http.StatusOK || body.JobID == 0 {
		t.Fatalf("status %d, %v: %s", a.status, err, a.body)
	}
	return fmt.Sprint(body.JobID)
}

// checkRanAs fails the test unless the job ran as the user and its output file
// belongs to that user.
func (m *machine) checkRanAs(t *testing.T, job, user string, uid uint32, output string) {
	t.Helper()
	if got := m.run(t, "root", "squeue", "-h", "-t", "all", "-j", job, "-o", "%u %U"); got != fmt.Sprint(user, " ", uid) {
		t.Errorf("squeue shows job %s of %q, want %s (%d)", job, got, user, uid)
	}
	eventually(t, "job "+job+" has ended", func() bool {
		state := m.run(t, "root", "squeue", "-h", "-t", "all", "-j", job, "-o", "%T")
		return state == "COMPLETED" || state == "FAILED"
	})
	file := filepath.Join(m.root, output)
	text, err := os.ReadFile(file)
	must(t, err)
	info, err := os.Stat(file)
	must(t, err)
	if s := info.Sys().(*syscall.Stat_t); s.Uid != uid || strings.TrimSpace(string(text)) != user {
		t.Errorf("the job ran as %q and its file belongs to uid %d, want %s (%d)", text, s.Uid, user, uid)
	}
}

// TestBecomeUser checks requests without a token over a UNIX socket. Each
// request must reach the controller as a request from its user, whose identity
// munged verifies. Two users send requests concurrently.
func TestBecomeUser(t *testing.T) {
	m := useCluster(t)
	m.start(t, "gateway", gatewaySocket, []string{"SCHEDRESTD_SECURITY=become_user"},
		"/opt/gateway/schedrestd", "-v", "-f", m.conf(), "-a", "rest_auth/local", "unix:"+gatewaySocket)
	must(t, os.Chmod(filepath.Join(m.root, gatewaySocket), 0o666))
	m.checkLocalUsers(t, "become")
}

// checkLocalUsers checks a gateway with become_user. Each call needs a
// different name, because the paths of the jobs' output files contain it.
func (m *machine) checkLocalUsers(t *testing.T, name string) {
	t.Run("users", func(t *testing.T) {
		for _, u := range users {
			t.Run(u.name, func(t *testing.T) {
				t.Parallel()
				c := m.clientAs(u.id, u.id, gatewaySocket)
				output := "/tmp/" + name + "-" + u.name
				os.Remove(filepath.Join(m.root, output))
				job := submitJob(t, c, output)
				m.checkRanAs(t, job, u.name, u.id, output)

				a, err := sendRequest(c, "GET", "/slurm/v0.0.42/job/"+job, "")
				must(t, err)
				if want := fmt.Sprintf(`"user_name":%q`, u.name); a.status != http.StatusOK || !strings.Contains(string(a.body), want) {
					t.Errorf("status %d, want %s in %.2000s", a.status, want, a.body)
				}
				if a, err = sendRequest(c, "GET", "/slurmdb/v0.0.42/jobs?users="+u.name, ""); err != nil || a.status != http.StatusOK {
					t.Errorf("accounting: %v, status %d: %.500s", err, a.status, a.body)
				}
			})
		}
	})
	t.Run("another's job", func(t *testing.T) {
		output := "/tmp/" + name + "-held"
		job := submitJob(t, m.clientAs(users[0].id, users[0].id, gatewaySocket), output)
		a, err := sendRequest(m.clientAs(users[1].id, users[1].id, gatewaySocket), "DELETE", "/slurm/v0.0.42/job/"+job, "")
		must(t, err)
		if a.status == http.StatusOK {
			t.Errorf("bob cancelled a job of alice's: %s", a.body)
		}
	})
}

// TestLocal checks a gateway that runs as an ordinary user. Over a UNIX socket
// it must accept this user without a token, and send the requests as this user.
func TestLocal(t *testing.T) {
	m := useCluster(t)
	alice, bob := users[0], users[1]
	m.gateway(t, "-u", alice.name, "-g", alice.name, "-a", "rest_auth/local,rest_auth/jwt")
	must(t, os.Chmod(filepath.Join(m.root, gatewaySocket), 0o666))
	output := "/tmp/local-alice"
	os.Remove(filepath.Join(m.root, output))
	job := submitJob(t, m.clientAs(alice.id, alice.id, gatewaySocket), output)
	m.checkRanAs(t, job, alice.name, alice.id, output)
	if a, err := sendRequest(m.clientAs(bob.id, bob.id, gatewaySocket), "GET", "/slurm/v0.0.42/ping", ""); err != nil || a.status != http.StatusUnauthorized {
		t.Errorf("another user without a token: %v, status %d", err, a.status)
	}
}
