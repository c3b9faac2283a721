package slurm

import (
	"net/http"
	"strings"
	"testing"
)

// issue replaces the certificate of a daemon, and its key. Without the arguments
// "-CA" and "-CAkey" it is a new CA. All arguments are for "openssl req".
func (m *machine) issue(t *testing.T, name string, args ...string) {
	t.Helper()
	path := "/etc/slurm/" + name + "_cert"
	m.run(t, "root", append([]string{"openssl", "req", "-x509", "-noenc", "-subj", "/CN=" + name,
		"-keyout", path + "_key.pem", "-out", path + ".pem"}, args...)...)
}

// TestS2N checks what depends on the certificates of daemons that speak TLS
// themselves: a running gateway must follow the daemons, and say what is wrong
// with a certificate.
func TestS2N(t *testing.T) {
	if !withS2N {
		notForThisRun(t, "the daemons speak no TLS")
	}
	m := freshCluster(t)
	serve := func(t *testing.T, env ...string) *daemon {
		t.Helper()
		return m.start(t, "gateway", gatewaySocket, append(env, "SLURM_JWT=daemon"),
			"/opt/gateway/schedrestd", "-v", "-f", m.conf(), "-u", "rest", "-g", "rest", "unix:"+gatewaySocket)
	}
	const nodesPath = "/slurm/v0.0.42/nodes"
	wantProblem := func(t *testing.T, path, want string) {
		t.Helper()
		eventually(t, "answer: "+want, func() bool {
			a, err := sendRequest(m.client(gatewaySocket), "GET", path, "", "X-SLURM-USER-TOKEN: "+m.token)
			must(t, err)
			return a.status == http.StatusServiceUnavailable && strings.Contains(string(a.body), want)
		})
	}
	issue := func(t *testing.T, name string, args ...string) {
		t.Helper()
		m.issue(t, name, append(args, "-addext", "basicConstraints=CA:FALSE", "-CA", "/etc/slurm/ca_cert.pem", "-CAkey", "/etc/slurm/ca_cert_key.pem")...)
	}
	const goodName = "subjectAltName=DNS:head,IP:127.0.0.1"
	p256 := []string{"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"}

	for _, tt := range []struct {
		name string
		key  []string // arguments
	}{
		{"RSA", []string{"-newkey", "rsa:2048"}},
		{"P-384", []string{"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			issue(t, "ctld", append(tt.key, "-addext", goodName)...)
			m.restartController(t)
			serve(t)
			m.wantServed(t, http.StatusOK)
		})
	}

	t.Run("names", func(t *testing.T) {
		issue(t, "ctld", append(p256, "-addext", goodName)...)
		m.restartController(t)
		serve(t, "SCHEDRESTD_TLS_NAMES=check")
		m.wantServed(t, http.StatusOK)
		issue(t, "ctld", append(p256, "-addext", "subjectAltName=DNS:elsewhere,IP:127.0.0.9")...)
		m.restartController(t) // Slurm's own commands compare no names
		wantProblem(t, nodesPath, "does not contain the daemon's name")
		issue(t, "ctld", append(p256, "-addext", goodName)...)
		m.restartController(t)
		m.wantServed(t, http.StatusOK)
	})

	t.Run("a new CA", func(t *testing.T) {
		d := serve(t)
		m.wantServed(t, http.StatusOK)
		m.issue(t, "ca", p256...)
		for _, name := range []string{"ctld", "dbd"} {
			issue(t, name, p256...)
		}
		m.signal(t, "slurmdbd", "KILL")
		m.restart(t, "slurmdbd")
		m.restartController(t)
		wantProblem(t, nodesPath, "is not from the cluster's CA")
		d.reload(t, "configuration reloaded")
		m.wantServed(t, http.StatusOK)
		a, err := sendRequest(m.client(gatewaySocket), "GET", accountsPath, "", "X-SLURM-USER-TOKEN: "+m.token)
		if err != nil || a.status != http.StatusOK {
			t.Errorf("accounting: %v, status %d: %.300s", err, a.status, a.body)
		}
	})

	t.Run("expired", func(t *testing.T) {
		serve(t)
		m.wantServed(t, http.StatusOK)
		issue(t, "dbd", append(p256, "-not_before", "20200101000000Z", "-not_after", "20200102000000Z")...)
		m.signal(t, "slurmdbd", "KILL")
		m.run(t, "slurm", "setsid", "--fork", "sh", "-c", "exec slurmdbd -D >/dev/null 2>&1") // Slurm's commands don't reach it
		wantProblem(t, accountsPath, "has expired")
	})
}
