package privsep

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestRenewal checks that clients see renewed certificates without a restart.
// If the new files can't be used, the old ones must stay in use, and the log
// must say so once.
func TestRenewal(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	s := newSite(t, as)
	g := serve(t, as, s.config(testConfig{}))
	served := func() bool { _, _, err := secured(s.client(g.addr), "/pid"); return err == nil }
	complaints := func(text string) (n int) {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, r := range g.records {
			if r["msg"] == "new certificate rejected; keeping the old one, if any" && strings.Contains(fmt.Sprint(r["error"]), text) {
				n++
			}
		}
		return n
	}
	old := s.leaf
	s.renew()
	g.eventually("the new pair is served", served)

	for problem, text := range map[string]string{
		"does not match": keyText(t, s.key),
		"no private key": "",
	} {
		if problem == "does not match" {
			otherKey, _, _ := pairOf(t, nil, nil)
			text = keyText(t, otherKey)
		}
		before := complaints(problem) // 1 if the parent checked the files after the key was renewed, but before the certificate was
		s.put(s.Key, text, 0o600)
		g.eventually("a complaint: "+problem, func() bool { return complaints(problem) > before })
		for range 10 { // time for checks of the files
			time.Sleep(20 * time.Millisecond)
			if !served() {
				t.Fatalf("%s: the pair before it is not served", problem)
			}
		}
		if n := complaints(problem) - before; n != 1 {
			t.Errorf("%s: %d complaints", problem, n)
		}
	}
	s.put(s.Key, keyText(t, s.key), 0o644)
	g.eventually("a complaint of the mode", func() bool { return complaints("lets other users access it") == 1 })
	must(t, os.Remove(s.Certificate))
	must(t, os.Chmod(s.Key, 0o600))
	g.eventually("a complaint of the certificate", func() bool { return complaints("certificate file "+s.Certificate+": no such file") == 1 })
	s.renew()
	g.eventually("the new pair is served", served)
	if s.leaf.Equal(old) {
		t.Fatal("nothing was renewed")
	}
}

// TestClientCertificates checks a gateway that has certificate authorities for
// clients. It must refuse a client that has no certificate from any of these
// authorities.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	as := plainUser(t)
	s := newSite(t, as)
	caKey, ca, caText := pairOf(t, nil, nil)
	s.ClientCA = filepath.Join(filepath.Dir(s.Key), "ca.pem")
	s.put(s.ClientCA, caText, 0o644)
	g := serve(t, as, s.config(testConfig{}))
	with := func(key *ecdsa.PrivateKey, c *x509.Certificate) func(*tls.Config) {
		return func(config *tls.Config) {
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: key}, nil
			}
		}
	}
	key, leaf, _ := pairOf(t, ca, caKey)
	if _, _, err := secured(s.client(g.addr, with(key, leaf)), "/pid"); err != nil {
		t.Errorf("a client of the authority: %v", err)
	}
	if _, _, err := secured(s.client(g.addr), "/pid"); err == nil {
		t.Error("a client without a certificate came in")
	}
	strangeKey, strangeCert, _ := pairOf(t, nil, nil)
	if _, _, err := secured(s.client(g.addr, with(strangeKey, strangeCert)), "/pid"); err == nil {
		t.Error("a client with a self-made certificate was accepted")
	}
	// Another authority replaces the first.
	caKey2, ca2, caText2 := pairOf(t, nil, nil)
	s.put(s.ClientCA, caText2, 0o644)
	key2, leaf2, _ := pairOf(t, ca2, caKey2)
	g.eventually("the second pair is served", func() bool { _, _, err := secured(s.client(g.addr, with(key2, leaf2)), "/pid"); return err == nil })
	g.eventually("the first pair is not", func() bool { _, _, err := secured(s.client(g.addr, with(key, leaf)), "/pid"); return err != nil })
	// If the file of authorities is broken, the gateway keeps the old
	// authorities. It must still refuse clients without a certificate.
	s.put(s.ClientCA, "broken", 0o644)
	g.await("new certificate rejected; keeping the old one, if any", nil)
	if _, _, err := secured(s.client(g.addr), "/pid"); err == nil {
		t.Error("with broken authorities a client without a certificate came in")
	}
	if _, _, err := secured(s.client(g.addr, with(key2, leaf2)), "/pid"); err != nil {
		t.Errorf("with broken authorities a good client: %v", err)
	}
}
