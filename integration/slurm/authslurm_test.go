package slurm

import (
	"crypto/rand"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// useAuthSlurm stops munged, and restarts the cluster's other daemons with
// AuthType=auth/slurm.
func (m *machine) useAuthSlurm(t *testing.T) {
	t.Helper()
	key := make([]byte, 64)
	rand.Read(key)
	file := filepath.Join(m.root, "etc/slurm/slurm.key")
	must(t, os.WriteFile(file, key, 0o600))
	must(t, os.Chown(file, 64030, 64030))
	for _, dir := range []string{"slurmctld", "slurmdbd"} { // the daemons run as slurm, who can't create these directories
		m.run(t, "root", "install", "-d", "-o", "slurm", "/run/"+dir)
	}
	// slurmd requires that root owns this directory. But slurmctld, which does
	// not run as root, must write its pid file there.
	m.run(t, "root", "install", "-d", "-o", "root", "-m", "0777", "/run/slurm")
	for _, name := range []string{"slurm.conf", "slurmdbd.conf"} {
		file := filepath.Join(m.root, "etc/slurm", name)
		text, err := os.ReadFile(file)
		must(t, err)
		text = regexp.MustCompile(`(?m)^AuthInfo=.*\n`).ReplaceAll(text, nil)
		text = []byte(strings.Replace(string(text), "AuthType=auth/munge", "AuthType=auth/slurm", 1))
		if name == "slurm.conf" {
			text = append(text, "CredType=cred/slurm\n"...)
		}
		must(t, os.WriteFile(file, text, 0)) // keeps owner and mode
	}
	m.signal(t, "munged", "TERM")
	for _, name := range []string{"slurmd", "slurmctld", "slurmdbd"} {
		_, _ = m.try("root", "pkill", "-TERM", "-x", name) // a second SIGHUP while slurmd reconfigures may have ended it
		eventually(t, name+" has ended", func() bool {
			_, err := m.try("root", "pgrep", "-x", name)
			return err != nil
		})
	}
	for _, name := range []string{"slurmdbd", "slurmctld", "slurmd"} {
		m.restart(t, name)
	}
}

// TestAuthSlurm checks AuthType=auth/slurm without munged. The gateway must
// serve local users with credentials from Slurm's sack.socket. It must also
// serve users with tokens, as usual.
func TestAuthSlurm(t *testing.T) {
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("auth/slurm is new in 23.11")
	}
	m.useAuthSlurm(t)
	args := []string{"/opt/gateway/schedrestd", "-v", "-f", m.conf()}
	serve := func(t *testing.T, env ...string) {
		t.Helper()
		m.start(t, "gateway", gatewaySocket, append(env, "SCHEDRESTD_SECURITY=become_user"), append(args, "-a", "rest_auth/local", "unix:"+gatewaySocket)...)
		must(t, os.Chmod(filepath.Join(m.root, gatewaySocket), 0o666))
	}
	t.Run("slurmd and slurmctld", func(t *testing.T) {
		serve(t)
		m.checkLocalUsers(t, "auth-slurm")
	})
	t.Run("sackd", func(t *testing.T) {
		if _, err := os.Stat(filepath.Join(m.root, "usr/sbin/sackd")); err != nil {
			t.Skip("sackd is not installed")
		}
		// The socket of sackd replaces that of slurmd, which has the same path.
		const socket = "/run/slurm/sack.socket"
		m.start(t, "sackd", socket, nil, "setpriv", "--reuid=slurm", "--regid=slurm", "--init-groups", "sackd", "-D", "-f", "/etc/slurm/slurm.conf")
		serve(t, "SLURM_SACK_SOCKET="+socket)
		m.checkLocalUsers(t, "sackd")
	})
	t.Run("one user", func(t *testing.T) {
		alice := users[0]
		m.gateway(t, "-u", alice.name, "-g", alice.name, "-a", "rest_auth/local,rest_auth/jwt")
		must(t, os.Chmod(filepath.Join(m.root, gatewaySocket), 0o666))
		output := "/tmp/auth-slurm-local"
		os.Remove(filepath.Join(m.root, output))
		m.checkRanAs(t, submitJob(t, m.clientAs(alice.id, alice.id, gatewaySocket), output), alice.name, alice.id, output)
		a, err := sendRequest(m.client(gatewaySocket), "GET", "/slurmdb/v0.0.42/accounts", "", "X-SLURM-USER-TOKEN: "+m.token)
		if err != nil || a.status != http.StatusOK {
			t.Errorf("with a token: %v, status %d: %.300s", err, a.status, a.body)
		}
	})
	t.Run("no socket", func(t *testing.T) {
		serve(t, "SLURM_SACK_SOCKET=/run/none/sack.socket")
		for _, path := range []string{"/slurm/v0.0.42/nodes", "/slurmdb/v0.0.42/accounts"} {
			a, err := sendRequest(m.clientAs(users[0].id, users[0].id, gatewaySocket), "GET", path, "")
			must(t, err)
			if a.status != http.StatusServiceUnavailable || !strings.Contains(string(a.body), "sack.socket can't be reached") || strings.Contains(string(a.body), "/run/none") {
				t.Errorf("%s: status %d: %.500s", path, a.status, a.body)
			}
		}
		log, err := os.ReadFile(filepath.Join(m.root, "var/log/slurm/gateway.log"))
		must(t, err)
		if !strings.Contains(string(log), "/run/none/sack.socket") {
			t.Errorf("the log does not name the socket:\n%s", log)
		}
	})
}
