package keeper

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/service"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

func init() { ownUID = 4999 } // the user who runs the tests may have the uid of one of their users

// hash13 returns the message that a TLS 1.3 server signs, with a transcript
// hash of n bytes.
func hash13(n int) []byte {
	m := append(bytes.Repeat([]byte{0x20}, 64), "TLS 1.3, server CertificateVerify"...)
	m = append(m, 0)
	return append(m, bytes.Repeat([]byte{0xab}, n)...)
}

// params12 returns the message that a TLS 1.2 server signs, with a point of n
// bytes on the curve.
func params12(curve byte, n int) []byte {
	m := bytes.Repeat([]byte{0xcd}, 64)
	m = append(m, 3, 0, curve, byte(n), 4)
	return append(m, make([]byte, n-1)...)
}

// TestCheckMessage checks that the keeper signs only the messages that a TLS
// server signs, whatever a compromised worker requests.
func TestCheckMessage(t *testing.T) {
	good, old := hash13(32), params12(29, 32)
	edit := func(m []byte, at int, b byte) []byte {
		m = bytes.Clone(m)
		m[at] = b
		return m
	}
	digest := sha256.Sum256(good)
	client := bytes.Replace(good, []byte("server"), []byte("client"), 1)
	tests := []struct {
		name    string
		key     crypto.Signer
		tls12   bool
		message []byte
		scheme  scheme
		want    error
	}{
		{"1.3, SHA-256", p256(), false, good, ecdsaSHA256, nil},
		{"1.3, SHA-384", p256(), false, hash13(48), ecdsaSHA256, nil},
		{"1.3, P-384", p384(), false, good, ecdsaSHA384, nil},
		{"1.3, P-521", p521(), false, good, ecdsaSHA512, nil},
		{"1.3, RSA", rsa2(), false, good, pssSHA256, nil},
		{"1.3, RSA with SHA-512", rsa2(), false, good, pssSHA512, nil},
		{"1.3, Ed25519", edwa(), false, good, pureEd25519, nil},
		{"1.2, X25519", p256(), true, old, ecdsaSHA256, nil},
		{"1.2, P-256", p256(), true, params12(23, 65), ecdsaSHA512, nil},
		{"1.2, RSA, PKCS#1", rsa2(), true, params12(24, 97), pkcs1SHA256, nil},

		{"a digest", p256(), true, digest[:], ecdsaSHA256, errNotHandshake},
		{"a digest of SHA-512", p256(), true, make([]byte, 64), ecdsaSHA256, errNotHandshake},
		{"nothing", p256(), true, nil, ecdsaSHA256, errNotHandshake},
		{"a client's", p256(), true, client, ecdsaSHA256, errNotHandshake},
		{"63 spaces", p256(), true, good[1:], ecdsaSHA256, errNotHandshake},
		{"65 spaces", p256(), true, append([]byte{' '}, good...), ecdsaSHA256, errNotHandshake},
		{"no zero", p256(), true, edit(good, 97, 1), ecdsaSHA256, errNotHandshake},
		{"a hash of 31 bytes", p256(), true, hash13(31), ecdsaSHA256, errNotHandshake},
		{"a hash of 33 bytes", p256(), true, hash13(33), ecdsaSHA256, errNotHandshake},
		{"a hash of 64 bytes", p256(), true, hash13(64), ecdsaSHA256, errNotHandshake},
		{"no hash", p256(), true, hash13(0), ecdsaSHA256, errNotHandshake},
		{"a delegated credential", p256(), true, append([]byte(strings.Repeat(" ", 64)+"TLS, server delegated credentials\x00"), make([]byte, 32)...), ecdsaSHA256, errNotHandshake},
		{"part of a certificate", p256(), true, append([]byte{0x30, 0x82, 1, 0x22}, make([]byte, 0x122)...), ecdsaSHA256, errNotHandshake},
		{"a token", p256(), true, []byte("eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJyb290In0"), ecdsaSHA256, errNotHandshake},
		{"another curve's hash", p256(), false, good, ecdsaSHA384, errScheme},
		{"PKCS#1 in 1.3", rsa2(), true, good, pkcs1SHA256, errScheme},
		{"RSA with a key on a curve", p256(), false, good, pssSHA256, errScheme},
		{"a curve with an RSA key", rsa2(), false, good, ecdsaSHA256, errScheme},
		{"SHA-1", p256(), true, old, 0x0203, errScheme},
		{"PKCS#1 with SHA-1", rsa2(), true, old, 0x0201, errScheme},
		{"scheme 0", p256(), true, good, 0, errScheme},
		{"Ed25519 with a hash", edwa(), false, good, ecdsaSHA256, errScheme},

		{"1.2 when it is off", p256(), false, old, ecdsaSHA256, errNotHandshake},
		{"1.2, one byte more", p256(), true, append(bytes.Clone(old), 0), ecdsaSHA256, errNotHandshake},
		{"1.2, one byte less", p256(), true, old[:len(old)-1], ecdsaSHA256, errNotHandshake},
		{"1.2, only the head", p256(), true, old[:68], ecdsaSHA256, errNotHandshake},
		{"1.2, an explicit curve", p256(), true, edit(old, 64, 1), ecdsaSHA256, errNotHandshake},
		{"1.2, an unknown curve", p256(), true, edit(old, 66, 30), ecdsaSHA256, errNotHandshake},
		{"1.2, another length of the point", p256(), true, edit(old, 67, 31), ecdsaSHA256, errNotHandshake},
		{"1.2, a compressed point", p256(), true, edit(params12(23, 65), 68, 2), ecdsaSHA256, errNotHandshake},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &pair{signer: tt.key, tls12: tt.tls12}
			if err := p.checkMessage(tt.message, tt.scheme); err != tt.want {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if tt.want != nil {
				return
			}
			signature, err := p.sign(tt.message, tt.scheme)
			if err != nil {
				t.Fatal(err)
			}
			verify(t, tt.key.Public(), tt.message, signature, tt.scheme)
		})
	}
}

// verify checks a signature as a TLS client would.
func verify(t *testing.T, key crypto.PublicKey, message, signature []byte, s scheme) {
	t.Helper()
	digest := map[byte]func() []byte{
		4: func() []byte { d := sha256.Sum256(message); return d[:] },
		5: func() []byte { d := sha512.Sum384(message); return d[:] },
		6: func() []byte { d := sha512.Sum512(message); return d[:] },
	}
	hash := map[byte]crypto.Hash{4: crypto.SHA256, 5: crypto.SHA384, 6: crypto.SHA512}
	ok := true
	switch key := key.(type) {
	case *ecdsa.PublicKey:
		ok = ecdsa.VerifyASN1(key, digest[byte(s>>8)](), signature)
	case *rsa.PublicKey:
		if s>>8 == 8 {
			ok = rsa.VerifyPSS(key, hash[byte(s)], digest[byte(s)](), signature, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
		} else {
			ok = rsa.VerifyPKCS1v15(key, hash[byte(s>>8)], digest[byte(s>>8)](), signature) == nil
		}
	}
	if !ok {
		t.Error("the signature is invalid")
	}
}

// newTestKeeper returns a keeper that serves but has no keys, and the
// dispatcher's end of its channel.
func newTestKeeper(t *testing.T) (*keeper, *ipc.Channel) {
	t.Helper()
	parent, fd, err := ipc.Pair(ipc.Managers, ipc.Keeper)
	if err != nil {
		t.Fatal(err)
	}
	keeperEnd, err := ipc.Open(fd, ipc.Keeper, ipc.Managers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { parent.Close(); keeperEnd.Close() })
	pass := func(from, to *ipc.Channel, m ipc.Message) {
		if err := from.Send(m); err != nil {
			t.Fatal(err)
		}
		if _, err := to.Receive(); err != nil {
			t.Fatal(err)
		}
	}
	pass(parent, keeperEnd, new(ipc.ServiceSetup))
	pass(parent, keeperEnd, new(ipc.Attributes))
	pass(keeperEnd, parent, new(ipc.Ready))
	pass(parent, keeperEnd, new(ipc.Ping)) // ends the handover
	k := newKeeper(keeperEnd)
	go service.Run(ipc.Keeper, keeperEnd, k)
	return k, parent
}

// keeperWithKey returns a keeper that has a private key.
func keeperWithKey(t *testing.T) *keeper {
	t.Helper()
	k, _ := newTestKeeper(t)
	if a := sendPair(t, k, pkcs8(p256()), certificate(p256(), nextYear), ""); !a.OK {
		t.Fatal(a.Reason)
	}
	return k
}

// sendKeys sends keys to k. The texts parameter holds the contents of the first
// files in ipc.SecretKeys.
func sendKeys(t *testing.T, k *keeper, m ipc.SecretKeys, texts ...string) *ipc.KeysResult {
	t.Helper()
	var fds []int
	for len(texts) < 7 {
		texts = append(texts, "") // no such file
	}
	for _, text := range texts {
		f := file(t, text)
		if text == "" {
			must(0, os.Remove(f.Name())) // as a file in memory
		}
		fd, err := unix.Dup(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
	}
	a := k.loadKeys(&m, fds)
	for _, fd := range fds {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != unix.EBADF {
			t.Errorf("a file of keys is still open: %v", err)
		}
	}
	return a
}

// sendPair sends k a private key with its certificates and a file of client
// CAs, but no key for tokens.
func sendPair(t *testing.T, k *keeper, key, certificates, authorities string) *ipc.KeysResult {
	t.Helper()
	return sendKeys(t, k, ipc.SecretKeys{TLS: true}, key, certificates, authorities, "")
}

// worker returns a worker's end of a channel to k.
func worker(t *testing.T, k *keeper, number uint32) *ipc.Channel {
	t.Helper()
	c, fd, err := ipc.Pair(ipc.Worker, ipc.Keeper)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	serve(t, k, fd, number)
	return c
}

// serve makes k serve the worker at the other end of the channel fd.
func serve(t *testing.T, k *keeper, fd int, number uint32) {
	t.Helper()
	channel := must(ipc.Open(fd, ipc.Keeper, ipc.Worker))
	go func() {
		defer channel.Close()
		k.Serve(service.NewClient(work.WorkerChannel{Number: number}, channel))
	}()
}

func askSignature(t *testing.T, c *ipc.Channel, message []byte) []byte {
	t.Helper()
	if err := c.Send(&query.Sign{ID: 7, Scheme: uint16(ecdsaSHA256), Message: message}); err != nil {
		t.Fatal(err)
	}
	m, err := c.Receive()
	if err != nil {
		t.Fatal(err)
	}
	a := m.Message.(*query.Signed)
	if a.ID != 7 {
		t.Errorf("an answer with the number %d", a.ID)
	}
	return a.Signature
}

// TestKeys checks that the keeper uses the keys in an ipc.SecretKeys message.
// If the keeper can't use one of them, it must send the reason and change no
// key.
func TestKeys(t *testing.T) {
	key, leaf := pkcs8(p256()), certificate(p256(), nextYear)
	allKeys := ipc.SecretKeys{TLS: true, Token: true, Current: true}
	k, _ := newTestKeeper(t)
	c := worker(t, k, 1)
	check := func(name string, signs bool, verdict query.Verdict) {
		t.Helper()
		if got := len(askSignature(t, c, hash13(32))) > 0; got != signs {
			t.Errorf("%s: signed %t, want %t", name, got, signs)
		}
		if got := askToken(t, c, 1, "a.b", mac(oneKey, "a.b")); got != verdict {
			t.Errorf("%s: verdict %d, want %d", name, got, verdict)
		}
	}
	refused := []struct {
		name                          string
		keys                          ipc.SecretKeys
		key, leaf, authorities, token string
		reason                        string
	}{
		{"another key's certificate", allKeys, pkcs8(p384()), leaf, "", oneKey, "the key does not match"},
		{"no private key", allKeys, "", leaf, "", oneKey, "key file: no private key"},
		{"no certificate", allKeys, key, "", "", oneKey, "certificate file: no certificate"},
		{"bad authorities", allKeys, key, leaf, "no authorities", oneKey, "client CA file: no certificate"},
		{"a short key of tokens", allKeys, key, leaf, "", "short", "5 bytes; HS256 needs at least 32"},
		{"no key of tokens", ipc.SecretKeys{Token: true}, "", "", "", "", "0 bytes"},
	}
	refuse := func() {
		t.Helper()
		for _, tt := range refused {
			a := sendKeys(t, k, tt.keys, tt.key, tt.leaf, tt.authorities, tt.token)
			if token := strings.HasSuffix(tt.name, "of tokens"); a.OK || a.Token != token || !strings.Contains(a.Reason, tt.reason) {
				t.Errorf("%s: %+v, want %q", tt.name, a, tt.reason)
			}
		}
	}
	check("before any key", false, query.NoVerdict)
	refuse()
	check("after refused ones", false, query.NoVerdict)
	if a := sendKeys(t, k, ipc.SecretKeys{}, key, leaf, "", oneKey); *a != (ipc.KeysResult{OK: true}) {
		t.Errorf("no key: %+v", a)
	}
	check("with no key", false, query.NoVerdict)
	if a := sendKeys(t, k, allKeys, key, leaf, leaf, oneKey); *a != (ipc.KeysResult{OK: true, Token: true}) {
		t.Errorf("good keys: %+v", a)
	}
	check("with keys", true, query.Genuine)
	refuse()
	check("after refused ones, with keys", true, query.Genuine)
}

// TestRefused checks that the keeper refuses by sending an empty signature, and
// that it does not log every refusal.
func TestRefused(t *testing.T) {
	log := capture(t)
	c := worker(t, keeperWithKey(t), 42)
	for range 100 {
		if s := askSignature(t, c, make([]byte, 32)); len(s) > 0 {
			t.Fatal("a digest was signed")
		}
	}
	if n := strings.Count(log.String(), "signature refused"); n < 1 || n > 10 || !strings.Contains(log.String(), "client=42") {
		t.Errorf("%d lines about 100 refusals:\n%s", n, log)
	}
	if len(askSignature(t, c, hash13(32))) == 0 {
		t.Error("an honest question after that is not answered")
	}
}

// TestHostile checks that a worker that violates the protocol loses its channel
// and is reported to the parent, and that other workers keep their channels.
func TestHostile(t *testing.T) {
	tests := []struct {
		name  string
		frame []byte
		fds   int
	}{
		{"unknown kind", []byte{99}, 0},
		{"the parent's kind", append([]byte{byte(ipc.KindOf(new(ipc.SecretKeys)))}, make([]byte, 4)...), 4},
		{"the keeper's kind", append([]byte{byte(ipc.KindOf(new(query.Signed)))}, make([]byte, 10)...), 0},
		{"a promise", append([]byte{byte(ipc.KindOf(new(work.Dial)))}, make([]byte, 9)...), 0},
		{"cut short", append([]byte{byte(ipc.KindOf(new(query.Sign)))}, make([]byte, 11)...), 0},
		{"left over", append([]byte{byte(ipc.KindOf(new(query.Sign)))}, make([]byte, 13)...), 0},
		{"too long", append([]byte{byte(ipc.KindOf(new(query.Sign)))}, make([]byte, 5000)...), 0},
		{"with a descriptor", append([]byte{byte(ipc.KindOf(new(query.Sign)))}, make([]byte, 12)...), 1},
		{"a verdict", append([]byte{byte(ipc.KindOf(new(query.Verified)))}, make([]byte, 9)...), 0},
		{"a worker's keys", append([]byte{byte(ipc.KindOf(new(work.Keys)))}, make([]byte, 6)...), 3},
		{"a signature cut short", append([]byte{byte(ipc.KindOf(new(query.Verify)))}, make([]byte, 41)...), 0},
		{"a signature and more", append([]byte{byte(ipc.KindOf(new(query.Verify)))}, make([]byte, 43)...), 0},
		{"a text that is missing", append([]byte{byte(ipc.KindOf(new(query.Verify))), 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0x1f}, make([]byte, 32)...), 0},
		{"a text too long", append([]byte{byte(ipc.KindOf(new(query.Verify))), 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x60}, make([]byte, 24577+32)...), 0},
		{"a signature with a descriptor", append([]byte{byte(ipc.KindOf(new(query.Verify)))}, make([]byte, 42)...), 1},
	}
	k, parent := newTestKeeper(t)
	if a := sendPair(t, k, pkcs8(p256()), certificate(p256(), nextYear), ""); !a.OK {
		t.Fatal(a.Reason)
	}
	honest := worker(t, k, 1)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fds[0])
			if err := parent.Send(&work.WorkerChannel{Number: 9}, fds[1]); err != nil {
				t.Fatal(err)
			}
			unix.Close(fds[1])
			var oob []byte
			if tt.fds > 0 {
				oob = unix.UnixRights(make([]int, tt.fds)...)
			}
			if err := unix.Sendmsg(fds[0], tt.frame, oob, nil, 0); err != nil {
				t.Fatal(err)
			}
			_ = unix.SetsockoptTimeval(fds[0], unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 60})
			if n, err := unix.Read(fds[0], make([]byte, 100)); n != 0 || err != nil {
				t.Errorf("read %d bytes, %v; want the end", n, err)
			}
			m, err := parent.Receive()
			if breach, ok := m.Message.(*work.WorkerViolation); err != nil || !ok || breach.Number != 9 || breach.Reason == "" {
				t.Errorf("the parent receives %+v, %v", m.Message, err)
			}
			if len(askSignature(t, honest, hash13(48))) == 0 {
				t.Error("another worker is not served")
			}
		})
	}
}

// TestMute checks that a worker that does not read its answers does not delay
// other workers.
func TestMute(t *testing.T) {
	k := keeperWithKey(t)
	mute, other := worker(t, k, 1), worker(t, k, 2)
	for i := 0; ; i++ {
		err := mute.TrySend(&query.Sign{ID: uint64(i), Scheme: uint16(ecdsaSHA256), Message: hash13(32)})
		if err == ipc.ErrFull {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(askSignature(t, other, hash13(32))) == 0 {
		t.Error("another worker is not served")
	}
}

// capture redirects the log to a buffer until the test ends, and returns the
// buffer.
func capture(t *testing.T) *buffer {
	t.Helper()
	b := &buffer{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { slog.SetDefault(before) })
	return b
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// TestWarns checks that the keeper logs a warning about a certificate that
// clients will reject.
func TestWarns(t *testing.T) {
	log := capture(t)
	if a := sendPair(t, newKeeper(nil), pkcs8(p256()), certificate(p256(), time.Now().Add(-time.Hour)), ""); !a.OK {
		t.Fatal(a.Reason)
	}
	if !strings.Contains(log.String(), `msg="certificate expired"`) {
		t.Errorf("logged %q", log)
	}
}

// FuzzCheckMessage checks that every accepted message has, byte by byte, the
// form of a message that a TLS server signs in a handshake.
func FuzzCheckMessage(f *testing.F) {
	f.Add(hash13(32), uint16(ecdsaSHA256), true)
	f.Add(hash13(48), uint16(pssSHA256), false)
	f.Add(params12(29, 32), uint16(ecdsaSHA256), true)
	f.Add(params12(25, 133), uint16(ecdsaSHA512), true)
	f.Add([]byte{}, uint16(0), true)
	keys := []crypto.Signer{p256(), rsa2(), edwa()}
	f.Fuzz(func(t *testing.T, m []byte, s uint16, tls12 bool) {
		for _, key := range keys {
			p := &pair{signer: key, tls12: tls12}
			if p.checkMessage(m, scheme(s)) != nil {
				continue
			}
			if _, ok := options[scheme(s)]; !ok {
				t.Fatalf("scheme %04x is accepted, but signing with it fails", s)
			}
			const context = "TLS 1.3, server CertificateVerify\x00"
			switch {
			case len(m) == 98+32 && string(m[:98]) == strings.Repeat(" ", 64)+context:
			case len(m) == 98+48 && string(m[:98]) == strings.Repeat(" ", 64)+context:
			case tls12 && len(m) == 68+int(m[67]) && m[64] == 3 && m[65] == 0 && bytes.IndexByte([]byte{23, 24, 25, 29}, m[66]) >= 0:
			default:
				t.Fatalf("let through: %q", m)
			}
		}
	})
}
