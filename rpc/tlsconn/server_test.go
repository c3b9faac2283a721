package tlsconn

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/internal/socket/sockettest"
	"schedrestd/rpc/tlsconn/tlstest"
)

// TestServer checks a Server with clients with TLS and without.
func TestServer(t *testing.T) {
	t.Parallel()
	ca := tlstest.NewCA(t)
	s, err := NewServer(tlstest.EncodePEM(t, ca.Issue(t)))
	if err != nil {
		t.Fatal(err)
	}
	errors := make(chan error, 1)
	address := sockettest.Serve(t, "tcp", func(nc net.Conn) {
		secure := s.Wrap(nc)
		defer secure.Close()
		text := make([]byte, 4)
		_, err := io.ReadFull(secure, text)
		if err == nil {
			_, err = secure.Write(text)
		}
		errors <- err
	})
	t.Run("with TLS", func(t *testing.T) {
		nc, err := newClient(t, false, ca).Connect(t.Context(), dial(t, address), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		io.WriteString(nc, "text")
		if text, err := io.ReadAll(nc); string(text) != "text" || err != nil || <-errors != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
	t.Run("without TLS", func(t *testing.T) {
		nc := dial(t, address)
		defer nc.Close()
		io.WriteString(nc, "\x00\x00\x00\x10\x2a\x00\x00\x00")
		if text, err := io.ReadAll(nc); !bytes.Equal(text, alert) || err != nil {
			t.Errorf("%q, %v", text, err)
		}
		if err := <-errors; err == nil || !strings.Contains(err.Error(), "TLSType") {
			t.Errorf("error %v", err)
		}
	})
}

// countingKey is a private key that counts its signatures.
type countingKey struct {
	crypto.Signer
	count atomic.Int32
}

func (k *countingKey) Sign(random io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	k.count.Add(1)
	return k.Signer.Sign(random, digest, opts)
}

// greeting is a connection that records what a client sends first.
type greeting struct {
	net.Conn
	text []byte
}

func (g *greeting) Write(b []byte) (int, error) { g.text = append(g.text, b...); return len(b), nil }
func (g *greeting) Read([]byte) (int, error)    { return 0, io.EOF }

// TestClientHasGone checks that a Server does not compute a signature, which
// takes most of the time of a handshake, for a client that has closed the
// connection already. Otherwise a recorded message of 200 bytes would be enough
// to keep a processor busy.
func TestClientHasGone(t *testing.T) {
	t.Parallel()
	ca := tlstest.NewCA(t)
	s, err := NewServer(tlstest.EncodePEM(t, ca.Issue(t)))
	if err != nil {
		t.Fatal(err)
	}
	key := &countingKey{Signer: s.config.Certificates[0].PrivateKey.(crypto.Signer)}
	s.config.Certificates[0].PrivateKey = key
	hello := new(greeting)
	tls.Client(hello, &tls.Config{InsecureSkipVerify: true}).Handshake()
	gone, errs := make(chan bool), make(chan error, 1)
	address := sockettest.Serve(t, "tcp", func(nc net.Conn) {
		if <-gone {
			for !hasGone(nc) {
				time.Sleep(time.Millisecond)
			}
		}
		secure := s.Wrap(nc)
		defer secure.Close()
		_, err := secure.Read(make([]byte, 1))
		errs <- err
	})
	for _, tt := range []struct {
		name string
		text []byte
		gone bool
		want int32 // signatures
	}{
		{"is there", hello.text, false, 1},
		{"has gone", hello.text, true, 0},
		{"has gone, and sent more", append(hello.text[:len(hello.text):len(hello.text)], 0x14), true, 0},
	} {
		key.count.Store(0)
		nc := dial(t, address)
		nc.Write(tt.text)
		if tt.gone {
			nc.Close()
		}
		gone <- tt.gone
		if !tt.gone {
			nc.Read(make([]byte, 1)) // the server's part of the handshake
			nc.Close()
		}
		if err := <-errs; err == nil || key.count.Load() != tt.want {
			t.Errorf("%s: %d signatures, %v", tt.name, key.count.Load(), err)
		}
	}
}

// TestNewServer checks that a certificate without its key is refused, and that
// no error quotes a key.
func TestNewServer(t *testing.T) {
	t.Parallel()
	ca := tlstest.NewCA(t)
	chain, key := tlstest.EncodePEM(t, ca.Issue(t))
	_, otherKey := tlstest.EncodePEM(t, ca.Issue(t))
	secret := strings.Split(string(otherKey), "\n")[1]
	for name, files := range map[string][2][]byte{
		"no certificate": {nil, key}, "no key": {chain, nil}, "another key": {chain, otherKey}, "exchanged": {otherKey, chain},
		"cut off": {chain, otherKey[:60]},
	} {
		if _, err := NewServer(files[0], files[1]); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
