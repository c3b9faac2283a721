package tlsconn

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

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
	address := serve(t, func(nc net.Conn) {
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
