package privsep

import (
	"context"
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
	"schedrestd/gateway/dispatcher"
	"strings"
	"syscall"
	"testing"
	"time"

	keeping "schedrestd/gateway/keeper"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	programs "schedrestd/privsep/program"
)

// playKeeper runs the real keeper, or a keeper that fails or breaks the
// protocol. The argument part selects which one.
func playKeeper(part string) int {
	switch part {
	case "good":
		return keeping.Main()
	case vouchesForAll, stampsForAll, breaksVouches, sendsChannel:
		return playVouching(part)
	case asksProcesses:
		return playAsking()
	case "crash":
		panic("no keeper here")
	case "sends nothing":
		time.Sleep(time.Hour)
	case "second has no key":
		if processNumber() != 2 {
			return keeping.Main()
		}
	case "first stops":
		if !markExisted() {
			part = "stopped"
		} else {
			return keeping.Main()
		}
	}
	c, err := ipc.Open(ipc.ServiceChannelFD, ipc.Keeper, ipc.Managers)
	if err != nil {
		return 9
	}
	for range 2 {
		if _, err := c.Receive(); err != nil {
			return 9
		}
	}
	if part == "refuses" {
		c.Send(&ipc.Refused{Reason: ipc.TruncateReason("no\x1bkeeper")})
		return 1
	}
	c.Send(new(ipc.Ready))
	switch part {
	case "unrequested keys result":
		sendRaw(ipc.KindOf(new(ipc.KeysResult)), 4, 0)
	case "unrequested pong":
		sendRaw(ipc.KindOf(new(ipc.Pong)), 8, 0)
	case "a worker's message":
		sendRaw(ipc.KindOf(new(work.ConnectionDone)), 8, 0)
	case "descriptor":
		sendRaw(ipc.KindOf(new(ipc.KeysResult)), 4, 1)
	}
	for {
		m, err := c.Receive()
		if err != nil {
			return 0
		}
		_, ok := m.Message.(*ipc.SecretKeys)
		switch {
		case ok && part == "stopped":
			c.Send(&ipc.KeysResult{OK: true})
			syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		case ok && part == "second has no key":
			c.Send(&ipc.KeysResult{Reason: "not to my taste"})
		}
	}
}

// site contains the paths of an https:// listener's files, the current key and
// certificate, and the user who owns the files.
type site struct {
	ipc.TLS
	t    *testing.T
	as   user
	key  *ecdsa.PrivateKey
	leaf *x509.Certificate
}

func newSite(t *testing.T, as user) *site {
	t.Helper()
	dir := socketDir(t, t.TempDir(), as)
	s := &site{t: t, as: as, TLS: ipc.TLS{Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}}
	s.renew()
	return s
}

// renew creates a new key and certificate. It installs the key first, and then
// the certificate.
func (s *site) renew() {
	s.t.Helper()
	key, cert, text := pairOf(s.t, nil, nil)
	s.key, s.leaf = key, cert
	s.put(s.Key, keyText(s.t, key), 0o600)
	s.put(s.Certificate, text, 0o644)
}

// put replaces a file as programs that renew certificates do: it writes a new
// file and renames it.
func (s *site) put(path, text string, mode os.FileMode) {
	s.t.Helper()
	must(s.t, os.WriteFile(path+".new", []byte(text), mode))
	must(s.t, os.Chmod(path+".new", mode))
	if s.as != nil {
		must(s.t, os.Chown(path+".new", int(s.as.Uid), int(s.as.Gid)))
	}
	must(s.t, os.Rename(path+".new", path))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pairOf creates a key and its certificate. If there is an authority, the
// authority signs the certificate. Otherwise the certificate is self-signed.
func pairOf(t *testing.T, authority *x509.Certificate, by *ecdsa.PrivateKey) (*ecdsa.PrivateKey, *x509.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	must(t, err)
	c := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "gateway"}, DNSNames: []string{"gateway"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true, IsCA: authority == nil, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	if authority == nil {
		authority, by = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, authority, key.Public(), by)
	must(t, err)
	parsed, err := x509.ParseCertificate(der)
	must(t, err)
	return key, parsed, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func keyText(t *testing.T, key *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

// config returns c with an additional https:// listener on a free port. The
// listener uses the certificate of s.
func (s *site) config(c testConfig) testConfig {
	c.TLS = s.TLS
	c.Listen = append(listens("https://127.0.0.1:0"), c.Listen...)
	c.Watch = 20 * time.Millisecond
	return c
}

// client returns a client that trusts the current certificate of s and opens a
// new connection for each request.
func (s *site) client(addr string, change ...func(*tls.Config)) *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(s.leaf)
	c := &tls.Config{RootCAs: pool, ServerName: "gateway"}
	for _, f := range change {
		f(c)
	}
	return &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: c, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", addr)
		}}}
}

// secured sends a request over TLS.
func secured(c *http.Client, path string) (*http.Response, string, error) {
	r, err := c.Get("https://gateway" + path)
	if err != nil {
		return nil, "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	return r, string(body), err
}

// keeperPID returns the pid of the nth keeper.
func (g *gateway) keeperPID(nth int) int {
	g.t.Helper()
	n := 0
	r := g.await("keeper ready", func(map[string]any) bool { n++; return n == nth })
	return int(r["pid"].(float64))
}

// TestHTTPS checks that the gateway serves HTTP/1.1 and HTTP/2 over TLS, that
// it accepts only TLS 1.3 by default, and that a client can resume a session
// with any worker.
func TestHTTPS(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	s := newSite(t, as)
	g := serve(t, as, s.config(testConfig{}))
	for proto, offered := range map[string][]string{"HTTP/2.0": {"h2"}, "HTTP/1.1": {"http/1.1"}} {
		c := s.client(g.addr, func(c *tls.Config) { c.NextProtos = offered })
		if offered[0] != "h2" {
			c.Transport.(*http.Transport).ForceAttemptHTTP2 = false
		}
		r, body, err := secured(c, "/pid")
		if err != nil || r.Proto != proto || r.TLS.Version != tls.VersionTLS13 || body == "" {
			t.Errorf("%s: %v %v", proto, r, err)
		}
	}
	if _, _, err := secured(s.client(g.addr, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), "/pid"); err == nil || !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("TLS 1.2: %v", err)
	}

	cache := tls.NewLRUClientSessionCache(1)
	resumed := map[string]bool{}
	g.eventually("both workers resume a session", func() bool {
		r, pid, err := secured(s.client(g.addr, func(c *tls.Config) { c.ClientSessionCache = cache }), "/pid")
		must(t, err)
		if r.TLS.DidResume {
			resumed[pid] = true
		}
		return len(resumed) == 2
	})
}

// TestTLS12 checks that the gateway serves TLS 1.2 when the configuration asks
// for it.
func TestTLS12(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	s := newSite(t, as)
	s.TLS12 = true
	g := serve(t, as, s.config(testConfig{}))
	r, _, err := secured(s.client(g.addr, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }), "/pid")
	if err != nil || r.TLS.Version != tls.VersionTLS12 {
		t.Errorf("%v %v", r, err)
	}
}

// TestTicketsRotate checks that a client can still resume a session after the
// ticket key was replaced once, but not after it was replaced again.
func TestTicketsRotate(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	s := newSite(t, as)
	c := s.config(testConfig{})
	const age = 400 * time.Millisecond
	c.Argv = argv{ipc.Dispatcher: dispatcherArgs(dispatcher.Limits{Age: age})}
	g := serve(t, as, c)
	var cache tls.ClientSessionCache
	resumes := func(first bool) bool {
		r, _, err := secured(s.client(g.addr, func(c *tls.Config) { c.ClientSessionCache = firstSessionCache{cache, first} }), "/pid")
		must(t, err)
		return r.TLS.DidResume
	}
	g.eventually("a session of the key before is resumed", func() bool { // on a slow machine the first attempts may come too late
		cache = tls.NewLRUClientSessionCache(1)
		resumes(true)
		time.Sleep(age * 3 / 2) // by then there is a newer key
		return resumes(false)
	})
	g.eventually("one of an older key is not", func() bool { return !resumes(false) })
}

// firstSessionCache is a TLS session cache that stores at most one session, and
// only if canStore is true.
type firstSessionCache struct {
	tls.ClientSessionCache
	canStore bool
}

// Put stores the first session only.
func (f firstSessionCache) Put(key string, s *tls.ClientSessionState) {
	if _, ok := f.Get(key); f.canStore && !ok {
		f.ClientSessionCache.Put(key, s)
	}
}

// TestNoKeeper checks that without an https:// listener the parent starts no
// keeper and needs no keeper program.
func TestNoKeeper(t *testing.T) {
	t.Parallel()
	g := serve(t, plainUser(t), testConfig{Binary: replace(t, ipc.Keeper, remove)})
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.records {
		if strings.Contains(fmt.Sprint(r["msg"]), "keeper") {
			t.Errorf("%v", r)
		}
	}
}

// TestKeeperDies checks that the parent replaces a keeper that was killed, and
// that clients are served again.
func TestKeeperDies(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	s := newSite(t, as)
	g := serve(t, as, s.config(testConfig{}))
	for n := 1; n <= 3; n++ {
		must(t, syscall.Kill(g.keeperPID(n), syscall.SIGKILL))
		g.keeperPID(n + 1)
		served := 0
		g.eventually("it is served again", func() bool {
			if _, _, err := secured(s.client(g.addr), "/pid"); err == nil {
				served++
			} else if served > 0 {
				t.Fatalf("after death %d: %v", n, err)
			}
			return served == 4
		})
	}
	// The key file is overwritten, so no file contains the key in use. The next
	// keeper gets the new content.
	key, leaf, text := pairOf(t, nil, nil)
	must(t, os.WriteFile(s.Key, []byte(keyText(t, key)), 0o600))
	must(t, os.WriteFile(s.Certificate, []byte(text), 0o644))
	s.leaf = leaf
	must(t, syscall.Kill(g.keeperPID(4), syscall.SIGKILL))
	g.keeperPID(5)
	g.eventually("it is served again", func() bool { _, _, err := secured(s.client(g.addr), "/pid"); return err == nil })
}

// TestKeeperWithoutKey checks a new keeper that can't use the key. The gateway
// must end this keeper, and give the key that was in use to the next one.
func TestKeeperWithoutKey(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	s := newSite(t, as)
	mark := filepath.Join(socketDir(t, t.TempDir(), as), "mark")
	g := serve(t, as, s.config(testConfig{Argv: argv{ipc.Keeper: {"second has no key", mark}}}))
	must(t, syscall.Kill(g.keeperPID(1), syscall.SIGKILL))
	r := g.await("new certificate rejected; keeping the old one, if any", nil)
	if !strings.Contains(r["error"].(string), "not to my taste") {
		t.Errorf("%v", r)
	}
	g.keeperPID(3)
	g.eventually("it is served again", func() bool { _, _, err := secured(s.client(g.addr), "/pid"); return err == nil })
}

// eventually calls await for a gateway.
func (g *gateway) eventually(event string, happened func() bool) {
	g.t.Helper()
	await(g.t, event, happened)
}

// TestHostileKeepers checks that the gateway does not start if the keeper
// refuses to serve, exits, hangs or breaks the protocol. The error must give
// the reason.
func TestHostileKeepers(t *testing.T) {
	t.Parallel()
	for part, want := range map[string]string{
		"refuses":                 `the keeper cannot serve: no\x1bkeeper`,
		"crash":                   "the keeper exited unexpectedly",
		"unrequested keys result": "", // the error depends on whether the message comes before the keys are sent
		"unrequested pong":        "which was not requested",
		"a worker's message":      "may not be sent by the keeper",
		"descriptor":              "came with 1 descriptors",
		"sends nothing":           "was not ready within",
	} {
		t.Run(part, func(t *testing.T) {
			as := plainUser(t)
			c := newSite(t, as).config(testConfig{Argv: argv{ipc.Keeper: {part}}})
			if part == "sends nothing" {
				c.StartLimit = hangLimit
			}
			if text, _ := launch(t, as, c).failure(); !strings.Contains(text, want) {
				t.Errorf("error %q, want %q", text, want)
			}
		})
	}
}

// TestSilentKeeper checks that a keeper that stops reading its channel is
// killed, and that the next keeper serves.
func TestSilentKeeper(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	s := newSite(t, as)
	mark := filepath.Join(socketDir(t, t.TempDir(), as), "mark")
	g := serve(t, as, s.config(testConfig{Argv: argv{ipc.Keeper: {"first stops", mark}}, Silence: hangLimit}))
	g.awaitReason("keeper exited", "has not read its channel")
	g.eventually("it is served again", func() bool { _, _, err := secured(s.client(g.addr), "/pid"); return err == nil })
}

// TestKeyFilesRefused checks that the gateway does not start if a file of the
// https:// listener is missing or unsuitable, or if another user can read the
// key or replace a file. The error's hint must name the remedy.
func TestKeyFilesRefused(t *testing.T) {
	t.Parallel()
	needRoot(t)
	tests := []struct {
		name       string
		spoil      func(*site)
		want, hint string
	}{
		{"others read it", func(s *site) { os.Chmod(s.Key, 0o604) }, "mode 0604 lets other users access it", "chmod 0600"},
		{"the serving user's", func(s *site) { os.Chown(s.Key, 65534, 0); os.Chmod(s.Key, 0o640) }, "owned by uid 65534", "chown root"},
		{"another's alone", func(s *site) { os.Chown(s.Key, 31237, 31237) }, "permission denied", "chown root"},
		{"the serving group reads it", func(s *site) { os.Chown(s.Key, 0, 65534); os.Chmod(s.Key, 0o640) }, "can read it", "chown root:root"},
		{"a link", func(s *site) { os.Rename(s.Key, s.Key+"1"); os.Symlink(s.Key+"1", s.Key) }, "link", ""},
		{"a directory", func(s *site) { os.Remove(s.Key); os.Mkdir(s.Key, 0o700) }, "not a regular file", ""},
		{"not there", func(s *site) { os.Remove(s.Key) }, "key.pem", "restd_cert_key_file"},
		{"no certificate there", func(s *site) { os.Remove(s.Certificate) }, "certificate file", "restd_cert_file"},
		{"others write the certificate", func(s *site) { os.Chmod(s.Certificate, 0o666) }, "mode 0666 lets other users write it", "chmod o-w"},
		{"of another key", func(s *site) {
			otherKey, _, _ := pairOf(s.t, nil, nil)
			s.put(s.Key, keyText(s.t, otherKey), 0o600)
		}, "the key does not match the first certificate", "openssl pkey -in "},
		{"authorities of the serving user", func(s *site) {
			s.ClientCA = s.Key + ".ca"
			raw, _ := os.ReadFile(s.Certificate)
			os.WriteFile(s.ClientCA, raw, 0o644)
			os.Chown(s.ClientCA, 65534, 0)
		}, "file of clients' authorities", "chown root"},
		{"no path", func(s *site) { s.TLS.Key = "" }, "", "restd_cert_key_file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, nil)
			tt.spoil(s)
			text, hint := launch(t, nil, s.config(testConfig{Service: identityOf("65534", "65534", "")})).failure()
			if !strings.Contains(text, tt.want) || !strings.Contains(hint, tt.hint) {
				t.Errorf("error %q, hint %q", text, hint)
			}
		})
	}
}

// TestOthersKeyFile checks the hint for a user who starts the gateway without
// root and can't read the key.
func TestOthersKeyFile(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s := newSite(t, plainUser(t))
	must(t, os.Chown(s.Key, 0, 0))
	text, hint := launch(t, plainUser(t), s.config(testConfig{})).failure()
	if !strings.Contains(text, "key file "+s.Key+": permission denied") || !strings.Contains(hint, "start as root with -u") {
		t.Errorf("error %q, hint %q", text, hint)
	}
}

// TestKeeperByHand checks that the keeper program prints an explanation when a
// program other than the gateway starts it.
func TestKeeperByHand(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(binary)
	cmd.Args = []string{programs.Name(ipc.Keeper), "good"}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "started by schedrestd, not by hand") {
		t.Errorf("%v: %s", err, out)
	}
}
