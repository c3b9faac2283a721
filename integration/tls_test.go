package integration

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"schedrestd/demo/site"
)

// secure is a lab whose gateway listens for https as well.
type secure struct {
	*lab
	addr      string // of the https:// listener
	cert, key string // files
	leaf      *x509.Certificate
}

// newSecure makes such a lab; parameters are further ones of TLSParameters.
func newSecure(t *testing.T, parameters ...string) *secure {
	t.Helper()
	s := &secure{}
	s.lab = newLab(t, func(l *lab) {
		s.lab = l
		s.cert, s.key = filepath.Join(l.Dir, "etc", "cert.pem"), filepath.Join(l.Dir, "etc", "key.pem")
		s.renew()
		port, err := site.FreePorts(1)
		must(t, err)
		s.addr = fmt.Sprintf("127.0.0.1:%d", port[0])
		l.restd.Args = append(l.restd.Args, "https://"+s.addr)
		s.Extra = "TLSParameters=" + strings.Join(append([]string{"restd_cert_file=" + s.cert, "restd_cert_key_file=" + s.key}, parameters...), ",") + "\n"
	})
	return s
}

// identity is a key and its certificate, by an authority or its own, as PEM.
type identity struct {
	key     *ecdsa.PrivateKey
	leaf    *x509.Certificate
	keyPEM  []byte
	certPEM []byte
}

func newIdentity(t *testing.T, by *identity) *identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	must(t, err)
	c := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "lab"}, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0), BasicConstraintsValid: true, IsCA: by == nil,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	parent, signer := c, key
	if by != nil {
		parent, signer = by.leaf, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	must(t, err)
	leaf, err := x509.ParseCertificate(der)
	must(t, err)
	text, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return &identity{key: key, leaf: leaf,
		keyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}),
		certPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// replace puts a file in place at once, as programs that renew certificates do.
func replace(t *testing.T, path string, text []byte, mode os.FileMode) {
	t.Helper()
	must(t, os.WriteFile(path+".new", text, mode))
	must(t, os.Rename(path+".new", path))
}

// renew makes another key and certificate.
func (s *secure) renew() {
	s.t.Helper()
	id := newIdentity(s.t, nil)
	replace(s.t, s.key, id.keyPEM, 0o600)
	replace(s.t, s.cert, id.certPEM, 0o644)
	s.leaf = id.leaf
}

// shown is whether a new connection is shown the certificate that s has now.
func (s *secure) shown() bool {
	c, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true})
	must(s.t, err)
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].Equal(s.leaf)
}

// curl asks with curl, which trusts the certificate file, and gives what it prints.
func (s *secure) curl(args ...string) (string, error) {
	s.t.Helper()
	tool, err := exec.LookPath("curl")
	if err != nil {
		s.t.Skip("there is no curl")
	}
	out, err := exec.Command(tool, append([]string{"-sS", "--max-time", "60", "--cacert", s.cert}, args...)...).CombinedOutput()
	return string(out), err
}

// TestHTTPS: curl speaks both versions of HTTP over TLS and gets what it gets without; the rules for
// tokens hold there as well.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	s := newSecure(t)
	url := "https://" + s.addr + "/sched/" + version + "/ping"
	for flag, want := range map[string]string{"--http1.1": "1.1 200", "--http2": "2 200"} {
		out, err := s.curl(flag, "-w", "\n%{http_version} %{http_code}", "-H", "X-SCHED-USER-TOKEN: "+s.userToken, url)
		if err != nil || !strings.HasSuffix(out, "\n"+want) || !strings.Contains(out, `"pings"`) {
			t.Errorf("%s: %v\n%s", flag, err, out)
		}
		out, err = s.curl(flag, "-w", "\n%{http_code}", url)
		if err != nil || !strings.HasSuffix(out, "\n401") || !strings.Contains(out, `"errors"`) {
			t.Errorf("%s without a token: %v\n%s", flag, err, out)
		}
		out, err = s.curl(flag, "-w", "\n%{http_code}", "-H", "X-SCHED-USER-TOKEN: "+s.userToken, "-H", "X-SLURM-USER-TOKEN: "+s.userToken+"x", url)
		if err != nil || !strings.HasSuffix(out, "\n401") {
			t.Errorf("%s with two tokens: %v\n%s", flag, err, out)
		}
	}
	out, err := s.curl("-w", "\n%{http_code}", "http://"+s.addr+"/")
	if err != nil || !strings.HasSuffix(out, "\n400") || !strings.Contains(out, "https://") {
		t.Errorf("a plain request: %v\n%s", err, out)
	}
}

// TestTLSVersions: what openssl says of the listener.
func TestTLSVersions(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("there is no openssl")
	}
	s := newSecure(t)
	client := func(args ...string) string {
		cmd := exec.Command(tool, append([]string{"s_client", "-connect", s.addr, "-CAfile", s.cert, "-ign_eof"}, args...)...)
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
	for range 6 { // with each of the workers
		if out := client("-tls1_3", "-sess_in", session); !strings.Contains(out, "Reused, TLSv1.3") || !strings.Contains(out, "HTTP/1.1 200") {
			t.Errorf("a session is not resumed:\n%s", out)
		}
	}
}

// TestCertificateRenewed: on a signal and without one, and a pair that does not fit changes nothing.
func TestCertificateRenewed(t *testing.T) {
	t.Parallel()
	s := newSecure(t)
	parent := s.daemons["schedrestd"].PID()
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	kept := func() { // by a client that keeps its connection
		r, err := c.Get("https://" + s.addr + "/healthz")
		must(t, err)
		_, err = io.Copy(io.Discard, r.Body)
		must(t, err)
		r.Body.Close()
	}
	kept()

	s.renew() // nobody says so
	eventually(t, "the renewed certificate is shown", s.shown)
	kept()

	other := newIdentity(t, nil)
	replace(t, s.key, other.keyPEM, 0o600)
	must(t, syscall.Kill(parent, syscall.SIGHUP))
	eventually(t, "the gateway complains", func() bool {
		return strings.Contains(strings.Join(s.daemons["schedrestd"].LastLines(50), "\n"), "the key does not match the first certificate")
	})
	if !s.shown() {
		t.Error("a pair that does not fit has changed what is shown")
	}
	s.renew()
	must(t, syscall.Kill(parent, syscall.SIGHUP))
	eventually(t, "the certificate after that is shown", s.shown)
}

// TestClientCertificate: required, when authorities are named, on https:// alone.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		must(t, os.Chmod(d, 0o755))
	}
	authority := newIdentity(t, nil)
	ca := filepath.Join(dir, "ca.pem")
	must(t, os.WriteFile(ca, authority.certPEM, 0o644))
	s := newSecure(t, "restd_ca_file="+ca)
	files := func(name string, id *identity) []string {
		key, cert := filepath.Join(dir, name+".key"), filepath.Join(dir, name+".pem")
		must(t, os.WriteFile(key, id.keyPEM, 0o600))
		must(t, os.WriteFile(cert, id.certPEM, 0o644))
		return []string{"--key", key, "--cert", cert}
	}
	url := "https://" + s.addr + "/healthz"
	if out, err := s.curl(append(files("good", newIdentity(t, authority)), "-f", url)...); err != nil {
		t.Errorf("a client of the authority: %v\n%s", err, out)
	}
	if out, err := s.curl("-f", url); err == nil {
		t.Errorf("a client without a certificate came in:\n%s", out)
	}
	if out, err := s.curl(append(files("strange", newIdentity(t, nil)), "-f", url)...); err == nil {
		t.Errorf("a client of nobody came in:\n%s", out)
	}
	s.ask("GET", "/sched/"+version+"/ping", "").want(t, 200)
}

// TestNoCertificate: https:// without a certificate does not start, and says what to set.
func TestNoCertificate(t *testing.T) {
	t.Parallel()
	s, err := site.New(t.TempDir())
	must(t, err)
	must(t, s.Configure())
	p := s.Schedrestd(bin, "https://127.0.0.1:0")
	cmd := exec.Command(filepath.Join(bin, "schedrestd"), p.Args...)
	cmd.Env = append(os.Environ(), p.Env...)
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "hint: ") || !strings.Contains(string(out), "restd_cert_file=") || !strings.Contains(string(out), "restd_cert_key_file=") {
		t.Errorf("%v:\n%s", err, out)
	}
}
