package gateway

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"schedrestd/bundled/demo/site"
	"schedrestd/integration/harness"
	"schedrestd/internal/socket/sockettest"
)

// TestHTTPS checks that curl gets the same answers with TLS as without, over
// both HTTP/1.1 and HTTP/2, and that the same rules for tokens apply.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	s := harness.NewTLSLab(t)
	url := "https://" + s.Addr + "/sched/" + harness.Version + "/ping"
	for flag, want := range map[string]string{"--http1.1": "1.1 200", "--http2": "2 200"} {
		out, err := s.Curl(flag, "-w", "\n%{http_version} %{http_code}", "-H", "X-SCHED-USER-TOKEN: "+s.OwnToken, url)
		if err != nil || !strings.HasSuffix(out, "\n"+want) || !strings.Contains(out, `"pings"`) {
			t.Errorf("%s: %v\n%s", flag, err, out)
		}
		out, err = s.Curl(flag, "-w", "\n%{http_code}", url)
		if err != nil || !strings.HasSuffix(out, "\n401") || !strings.Contains(out, `"errors"`) {
			t.Errorf("%s without a token: %v\n%s", flag, err, out)
		}
		out, err = s.Curl(flag, "-w", "\n%{http_code}", "-H", "X-SCHED-USER-TOKEN: "+s.OwnToken, "-H", "X-SLURM-USER-TOKEN: "+s.OwnToken+"x", url)
		if err != nil || !strings.HasSuffix(out, "\n401") {
			t.Errorf("%s with two tokens: %v\n%s", flag, err, out)
		}
	}
	out, err := s.Curl("-w", "\n%{http_code}", "http://"+s.Addr+"/")
	if err != nil || !strings.HasSuffix(out, "\n400") || !strings.Contains(out, "https://") {
		t.Errorf("a plain request: %v\n%s", err, out)
	}
}

// TestTLSVersions checks with openssl which TLS versions the listener accepts.
func TestTLSVersions(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	s := harness.NewTLSLab(t)
	client := func(args ...string) string {
		cmd := exec.Command(tool, append([]string{"s_client", "-connect", s.Addr, "-CAfile", s.CertFile, "-ign_eof"}, args...)...)
		cmd.Stdin = strings.NewReader("GET /healthz HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n")
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	if out := client("-tls1_2"); !strings.Contains(out, "alert") || strings.Contains(out, "HTTP/1.1 ") {
		t.Errorf("TLS 1.2 is served:\n%s", out)
	}
	session := filepath.Join(t.TempDir(), "session")
	if out := client("-tls1_3", "-sess_out", session); !strings.Contains(out, "New, TLSv1.3") || !strings.Contains(out, "Verify return code: 0 (ok)") || !strings.Contains(out, "HTTP/1.1 200") {
		t.Fatalf("TLS 1.3:\n%s", out)
	}
	for range 6 { // likely to reach each of the workers
		if out := client("-tls1_3", "-sess_in", session); !strings.Contains(out, "Reused, TLSv1.3") || !strings.Contains(out, "HTTP/1.1 200") {
			t.Errorf("a session is not resumed:\n%s", out)
		}
	}
}

// TestCertificateRenewed checks that the gateway uses a renewed certificate,
// whether or not it receives a signal. If the key does not match the
// certificate, the gateway must keep the previous pair.
func TestCertificateRenewed(t *testing.T) {
	t.Parallel()
	s := harness.NewTLSLab(t)
	parent := s.Daemons["schedrestd"].PID()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	sendKeepAlive := func() { // sends a request on a persistent connection
		r, err := c.Get("https://" + s.Addr + "/healthz")
		harness.Must(t, err)
		_, err = io.Copy(io.Discard, r.Body)
		harness.Must(t, err)
		r.Body.Close()
	}
	sendKeepAlive()

	s.RenewCert() // without a signal to the gateway
	harness.Eventually(t, "the renewed certificate is presented", s.ServesCurrentCert)
	sendKeepAlive()

	otherIdentity := harness.NewIdentity(t, nil)
	harness.ReplaceFile(t, s.KeyFile, otherIdentity.KeyPEM, 0o600)
	harness.Must(t, syscall.Kill(parent, syscall.SIGHUP))
	harness.Eventually(t, "the gateway logs an error", func() bool {
		return strings.Contains(strings.Join(s.Daemons["schedrestd"].LastLines(50), "\n"), "the key does not match the first certificate")
	})
	if !s.ServesCurrentCert() {
		t.Error("after an unusable pair, the gateway presents another certificate")
	}
	s.RenewCert()
	harness.Must(t, syscall.Kill(parent, syscall.SIGHUP))
	harness.Eventually(t, "the next certificate is presented", s.ServesCurrentCert)
}

// TestClientCertificate checks client certificates. https:// listeners must
// require them if authorities are configured. Other listeners must never
// require them.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		harness.Must(t, os.Chmod(d, 0o755))
	}
	authority := harness.NewIdentity(t, nil)
	ca := filepath.Join(dir, "ca.pem")
	harness.Must(t, os.WriteFile(ca, authority.CertPEM, 0o644))
	s := harness.NewTLSLab(t, "restd_ca_file="+ca)
	files := func(name string, id *harness.Identity) []string {
		key, cert := filepath.Join(dir, name+".key"), filepath.Join(dir, name+".pem")
		harness.Must(t, os.WriteFile(key, id.KeyPEM, 0o600))
		harness.Must(t, os.WriteFile(cert, id.CertPEM, 0o644))
		return []string{"--key", key, "--cert", cert}
	}
	url := "https://" + s.Addr + "/healthz"
	if out, err := s.Curl(append(files("good", harness.NewIdentity(t, authority)), "-f", url)...); err != nil {
		t.Errorf("a client of the authority: %v\n%s", err, out)
	}
	if out, err := s.Curl("-f", url); err == nil {
		t.Errorf("a client without a certificate was accepted:\n%s", out)
	}
	if out, err := s.Curl(append(files("strange", harness.NewIdentity(t, nil)), "-f", url)...); err == nil {
		t.Errorf("a client without a valid certificate was accepted:\n%s", out)
	}
	s.Request("GET", "/sched/"+harness.Version+"/ping", "").Want(t, 200)
}

// TestNoCertificate checks that a gateway with an https:// listener but no
// certificate does not start, and that the error names the missing settings.
func TestNoCertificate(t *testing.T) {
	t.Parallel()
	s, err := site.New(sockettest.Dir(t))
	harness.Must(t, err)
	harness.Must(t, s.Configure())
	p := s.Schedrestd(harness.Bin, "https://127.0.0.1:0")
	cmd := exec.Command(filepath.Join(harness.Bin, "schedrestd"), p.Args...)
	cmd.Env = append(os.Environ(), p.Env...)
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "hint: ") || !strings.Contains(string(out), "restd_cert_file=") || !strings.Contains(string(out), "restd_cert_key_file=") {
		t.Errorf("%v:\n%s", err, out)
	}
}
