package server

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/tlsconn"
	"schedrestd/rpc/tlsconn/tlstest"
)

// eachTransport calls a test with servers without TLS and with TLS.
func eachTransport(t *testing.T, test func(*testing.T, func(testing.TB, *Server) *fixture)) {
	t.Run("plain", func(t *testing.T) { test(t, start) })
	t.Run("TLS", func(t *testing.T) { test(t, startTLS) })
}

// startTLS is like start, for a server with TLS.
func startTLS(t testing.TB, s *Server) *fixture {
	t.Helper()
	ca := tlstest.NewCA(t)
	var err error
	if s.TLS, err = tlsconn.NewServer(tlstest.EncodePEM(t, ca.Issue(t))); err != nil {
		t.Fatal(err)
	}
	f := start(t, s)
	if f.client, err = tlsconn.ReadClient("ca.pem", ca.PEM(), true); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestAuthenticationOverTLS checks requests over TLS, and over a UNIX socket of
// the same server.
func TestAuthenticationOverTLS(t *testing.T) {
	f := startTLS(t, &Server{Handlers: map[message.Type]Handler{message.RequestAuthToken: whoami}})
	for network, cred := range map[string]*message.Credential{"tcp": &token, "unix": &kernel} {
		a, err := f.ask(t, network, encode(t, codec.V2411, message.RequestAuthToken, cred, message.Empty{}))
		var who message.TokenResponse
		if err == nil {
			err = a.Decode(&who)
		}
		if err != nil || strings.HasSuffix(who.Token, "kernel=true") != (network == "unix") {
			t.Errorf("%s: %q, %v", network, who.Token, err)
		}
	}
	a, err := f.ask(t, "tcp", encode(t, codec.V2411, message.RequestAuthToken, &kernel, message.Empty{}))
	if err != nil || code(t, a) == 0 {
		t.Errorf("without a token: %v", err)
	}
}

// TestStrangersOfTLS checks clients that do not speak as the server does.
func TestStrangersOfTLS(t *testing.T) {
	const timeout = 300 * time.Millisecond
	request := encode(t, codec.V2411, message.RequestPing, &token, message.Empty{})
	hello := "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("x", 200)
	tests := []struct {
		name   string
		start  func(testing.TB, *Server) *fixture
		sends  string
		answer string // beginning
		logged string
	}{
		{name: "a request without TLS", start: startTLS, sends: string(request), answer: "\x15\x03\x03\x00\x02\x02\x0a", logged: "TLSType"},
		{name: "silence", start: startTLS, logged: "i/o timeout"},
		{name: "a part of a handshake", start: startTLS, sends: hello[:100], logged: "i/o timeout"},
		{name: "a handshake without an end", start: startTLS, sends: "\x16\x03\x01\x00\x04\x01\x00\xff\xff", logged: "i/o timeout"},
		{name: "garbage", start: startTLS, sends: strings.Repeat("\xff", 100), answer: "\x15\x03\x03\x00\x02\x02\x0a", logged: "TLSType"},
		{name: "a handshake where there is no TLS", start: start, sends: hello, logged: "TLSType"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := tt.start(t, &Server{FrontTimeout: timeout})
			f.client = nil
			nc := f.dial(t, "tcp")
			io.WriteString(nc, tt.sends)
			nc.SetDeadline(time.Now().Add(time.Minute))
			text, _ := io.ReadAll(nc) // the kernel may reset a connection that was not read to its end
			if !bytes.HasPrefix(text, []byte(tt.answer)) || tt.answer == "" && len(text) > 0 {
				t.Errorf("answer %q, want %q", text, tt.answer)
			}
			eventually(t, "the log contains "+tt.logged, func() bool { return strings.Contains(f.log.String(), tt.logged) })
		})
	}
}

// TestUnusedConnections checks that nothing is logged about connections that end
// without a handshake. A gateway makes some in advance.
func TestUnusedConnections(t *testing.T) {
	eachTransport(t, func(t *testing.T, start func(testing.TB, *Server) *fixture) {
		f := start(t, &Server{Handlers: map[message.Type]Handler{message.RequestAuthToken: whoami}})
		client := f.client
		f.client = nil
		for range 5 {
			f.dial(t, "tcp").Close()
		}
		f.client = client
		if _, err := f.ask(t, "tcp", encode(t, codec.V2411, message.RequestAuthToken, &token, message.Empty{})); err != nil {
			t.Fatal(err)
		}
		eventually(t, "all have ended", func() bool { return f.activeConns() == 0 })
		if log := f.log.String(); strings.Contains(log, "connection ended") {
			t.Error(log)
		}
	})
}

// TestShutdownOverTLS checks that clients that read nothing do not delay a
// shutdown.
func TestShutdownOverTLS(t *testing.T) {
	f := startTLS(t, &Server{})
	for range 5 {
		f.dial(t, "tcp")
	}
	silent, err := net.Dial("tcp", f.tcp)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	eventually(t, "all are counted", func() bool { return f.activeConns() == 6 })
}
