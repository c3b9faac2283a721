package keys

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/worker/broker"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// A fakeKeeper acts as a keeper that signs everything with its key.
type fakeKeeper struct {
	t        *testing.T
	key      crypto.Signer
	opts     map[uint16]crypto.SignerOpts
	requests chan *query.Sign
}

func pss(h crypto.Hash) crypto.SignerOpts {
	return &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: h}
}

func newFakeKeeper(t *testing.T, key crypto.Signer) *fakeKeeper {
	return &fakeKeeper{t: t, key: key, requests: make(chan *query.Sign, 1000), opts: map[uint16]crypto.SignerOpts{
		0x0401: crypto.SHA256, 0x0501: crypto.SHA384, 0x0601: crypto.SHA512,
		0x0403: crypto.SHA256, 0x0503: crypto.SHA384, 0x0603: crypto.SHA512,
		0x0804: pss(crypto.SHA256), 0x0805: pss(crypto.SHA384), 0x0806: pss(crypto.SHA512), 0x0807: crypto.Hash(0)}}
}

// link connects s to the fake keeper, and returns the keeper's end of the
// channel. If a test closes this end, the keeper seems to have exited.
func (k *fakeKeeper) link(s *Keys) *ipc.Channel {
	k.t.Helper()
	return keeperEnd(k.t, s.keeper)
}

// answer signs until its channel closes.
func (k *fakeKeeper) answer(channel *ipc.Channel) {
	for {
		m, err := channel.Receive()
		if err != nil {
			return
		}
		want := m.Message.(*query.Sign)
		k.requests <- want
		signature, err := crypto.SignMessage(k.key, rand.Reader, want.Message, k.opts[want.Scheme])
		if err != nil {
			signature = nil
		}
		_ = channel.Send(&query.Signed{ID: want.ID, Signature: signature})
	}
}

// memFile returns a file with the given text. Its offset is at the end, as if
// another worker had read the file.
func memFile(t *testing.T, text []byte) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("keys", unix.MFD_CLOEXEC)
	must(t, err)
	f := os.NewFile(uintptr(fd), "keys")
	t.Cleanup(func() { f.Close() })
	_, err = f.Write(text)
	must(t, err)
	return f
}

// loadCertificates makes s load files with the given contents.
func loadCertificates(t *testing.T, s *Keys, m work.Keys, certificate, authorities []byte) {
	t.Helper()
	m.TLS = true
	s.loadTLS(&m, memFile(t, certificate), memFile(t, authorities))
}

func selfSigned(t *testing.T, key crypto.Signer) (*x509.Certificate, []byte) {
	t.Helper()
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"gateway"}, NotAfter: time.Now().AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return leaf, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// handshake performs a client's handshake with s.
func handshake(t *testing.T, s *Keys, leaf *x509.Certificate, maxVersion uint16) (tls.ConnectionState, error) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	server := tls.Server(far, s.TLS())
	go func() {
		if server.HandshakeContext(t.Context()) != nil {
			far.Close() // as server.handshake does
		}
	}()
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	client := tls.Client(near, &tls.Config{RootCAs: roots, ServerName: "gateway", MaxVersion: maxVersion, NextProtos: []string{"h2"}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := client.HandshakeContext(ctx)
	return client.ConnectionState(), err
}

// TestHandshake checks that the keeper signs the message that the client
// verifies, for each type of key and in both versions of TLS.
func TestHandshake(t *testing.T) {
	p256, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"P-256": p256, "P-384": p384, "RSA": oneRSA(), "Ed25519": edwards} {
		for version, label := range map[uint16]string{tls.VersionTLS13: "1.3", tls.VersionTLS12: "1.2"} {
			t.Run(name+" "+label, func(t *testing.T) {
				s, keeper := New(), newFakeKeeper(t, key)
				go keeper.answer(keeper.link(s))
				leaf, text := selfSigned(t, key)
				loadCertificates(t, s, work.Keys{PublicKeys: ipc.PublicKeys{TLS12: true}}, text, nil)
				state, err := handshake(t, s, leaf, version)
				if err != nil || state.Version != version || state.NegotiatedProtocol != "h2" {
					t.Fatalf("version %x, %q: %v", state.Version, state.NegotiatedProtocol, err)
				}
				request := <-keeper.requests
				if is13 := bytes.Contains(request.Message, []byte("TLS 1.3, server")); is13 != (version == tls.VersionTLS13) {
					t.Errorf("the keeper was asked to sign %+v", request)
				}
			})
		}
	}
}

// TestOldVersion checks that TLS 1.2 is not served by default.
func TestOldVersion(t *testing.T) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s, keeper := New(), newFakeKeeper(t, key)
	go keeper.answer(keeper.link(s))
	leaf, text := selfSigned(t, key)
	loadCertificates(t, s, work.Keys{}, text, nil)
	if _, err := handshake(t, s, leaf, tls.VersionTLS12); err == nil {
		t.Error("TLS 1.2 was served")
	}
}

// TestKeeperGone checks that a handshake fails if the keeper has exited, or
// exits during the handshake. No handshake may hang.
func TestKeeperGone(t *testing.T) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	s, keeper := New(), newFakeKeeper(t, key)
	channel := keeper.link(s)
	leaf, text := selfSigned(t, key)
	loadCertificates(t, s, work.Keys{}, text, nil)
	done := make(chan error, 1)
	go func() {
		_, err := handshake(t, s, leaf, tls.VersionTLS13)
		done <- err
	}()
	if _, err := channel.Receive(); err != nil { // the keeper got the question
		t.Fatal(err)
	}
	channel.Close()
	if err := <-done; err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the handshake during which the keeper exited: %v", err)
	}
	if _, err := handshake(t, s, leaf, tls.VersionTLS13); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a later handshake: %v", err)
	}
}

// TestUnsigned checks that a refusal by the keeper makes the handshake fail
// immediately.
func TestUnsigned(t *testing.T) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	k := refusingKey(t, key)
	if _, err := k.SignMessage(nil, []byte("m"), crypto.SHA256); err == nil || !strings.Contains(err.Error(), "refused to sign") {
		t.Errorf("got %v", err)
	}
	if _, err := k.SignMessage(nil, make([]byte, 5000), crypto.SHA256); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a message that no handshake has: %v", err)
	}
	if _, err := k.Sign(nil, make([]byte, 32), crypto.SHA256); err == nil {
		t.Error("a digest was signed")
	}
	if _, err := k.SignMessage(nil, []byte("m"), crypto.SHA1); err == nil {
		t.Error("a signature with SHA-1")
	}
}

// TestBadFiles checks that no connection is served if a file can't be used. In
// particular, if client certificates are required, a bad file must not make
// them optional.
func TestBadFiles(t *testing.T) {
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, good := selfSigned(t, key)
	bad := bytes.Replace(good, []byte("MII"), []byte("AAA"), 1)
	for _, tt := range []struct {
		name                     string
		keys                     work.Keys
		certificate, authorities []byte
		want                     bool
	}{
		{"no certificate", work.Keys{}, nil, nil, false},
		{"text for a certificate", work.Keys{}, []byte("no PEM"), nil, false},
		{"a broken certificate", work.Keys{}, bad, nil, false},
		{"a broken certificate in the chain", work.Keys{}, append(bytes.Clone(good), bad...), nil, false},
		{"no authorities", work.Keys{PublicKeys: ipc.PublicKeys{Authorities: true}}, good, nil, false},
		{"text for authorities", work.Keys{PublicKeys: ipc.PublicKeys{Authorities: true}}, good, []byte("no PEM"), false},
		{"a broken authority", work.Keys{PublicKeys: ipc.PublicKeys{Authorities: true}}, good, append(bytes.Clone(good), bad...), false},
		{"good authorities", work.Keys{PublicKeys: ipc.PublicKeys{Authorities: true}}, good, good, true},
		{"no authorities required", work.Keys{}, good, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := New()
			if s.TLS() != nil {
				t.Error("TLS is served without a certificate")
			}
			loadCertificates(t, s, tt.keys, tt.certificate, tt.authorities)
			c := s.TLS()
			if (c != nil) != tt.want {
				t.Fatalf("a connection is served: %t, want %t", c != nil, tt.want)
			}
			if tt.want && (c.ClientAuth == tls.RequireAndVerifyClientCert && c.ClientCAs != nil) != tt.keys.Authorities {
				t.Errorf("client certificates: %s", c.ClientAuth)
			}
		})
	}
}

// refusingKey returns a remoteKey for key. Its keeper refuses to sign.
func refusingKey(t *testing.T, key *ecdsa.PrivateKey) remoteKey {
	client := broker.NewKeeper()
	channel := keeperEnd(t, client)
	go func() {
		for {
			m, err := channel.Receive()
			if err != nil {
				return
			}
			_ = channel.Send(&query.Signed{ID: m.Message.(*query.Sign).ID})
		}
	}()
	return remoteKey{keeper: client, public: key.Public()}
}
