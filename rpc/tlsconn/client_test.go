package tlsconn

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/rpc/tlsconn/tlstest"
)

func dial(t testing.TB, address string) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return nc
}

func newClient(t testing.TB, checkNames bool, issuers ...*tlstest.Issuer) *Client {
	t.Helper()
	var text []byte
	for _, i := range issuers {
		text = append(text, i.PEM()...)
	}
	c, err := ReadClient("ca.pem", text, checkNames)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// answering serves TLS with a configuration, and answers each byte with another.
func answering(config *tls.Config) func(net.Conn) {
	return func(nc net.Conn) {
		server := tls.Server(nc, config)
		defer server.Close()
		b := make([]byte, 1)
		if _, err := server.Read(b); err == nil {
			server.Write([]byte{b[0] + 1})
			io.Copy(io.Discard, server)
		}
	}
}

// readHello reads what a client sends first.
func readHello(nc net.Conn) {
	nc.Read(make([]byte, 16<<10))
}

// TestConnect checks handshakes with servers of all kinds. After a successful
// one, a byte must be answered.
func TestConnect(t *testing.T) {
	t.Parallel()
	ca := tlstest.NewCA(t)
	other, middle := tlstest.NewCA(t), ca.Intermediate(t)
	with := func(c tls.Certificate, change ...func(*tls.Config)) func(net.Conn) {
		config := &tls.Config{Certificates: []tls.Certificate{c}}
		for _, f := range change {
			f(config)
		}
		return answering(config)
	}
	leaf := ca.Issue(t)
	withoutIntermediate := middle.Issue(t)
	withoutIntermediate.Certificate = withoutIntermediate.Certificate[:1]
	certificate := func(change ...func(*x509.Certificate)) func(net.Conn) { return with(ca.Issue(t, change...)) }
	names := func(dns ...string) func(net.Conn) {
		return certificate(func(c *x509.Certificate) { c.DNSNames, c.IPAddresses = dns, nil })
	}
	reset := func(nc net.Conn) {
		readHello(nc)
		nc.(*net.TCPConn).SetLinger(0)
	}
	writing := func(text string) func(net.Conn) {
		return func(nc net.Conn) {
			readHello(nc)
			io.WriteString(nc, text)
			io.Copy(io.Discard, nc)
		}
	}
	const sameCA, plain, closed = "is not from the cluster's CA", "does not speak TLS", "closed the connection in the TLS handshake"
	tests := []struct {
		name    string
		server  func(net.Conn)
		roots   []*tlstest.Issuer // nil for the CA of most certificates
		check   bool              // names are compared
		names   []string          // of the daemon; nil for two names
		problem string
		hint    string
		kind    errs.Kind
		stalls  bool
	}{
		{name: "TLS 1.3", server: with(leaf)},
		{name: "TLS 1.2", server: with(leaf, func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 })},
		{name: "TLS 1.1", server: with(leaf, func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }), problem: "the TLS handshake with", hint: "its log has the reason"},
		{name: "what s2n offers by default", server: with(leaf, func(c *tls.Config) {
			c.CurvePreferences, c.SessionTicketsDisabled, c.ClientAuth = []tls.CurveID{tls.CurveP256, tls.CurveP384}, true, tls.VerifyClientCertIfGiven
		})},
		{name: "a certificate of the client required", server: with(leaf, func(c *tls.Config) { c.ClientAuth, c.MaxVersion = tls.RequireAnyClientCert, tls.VersionTLS12 }),
			problem: "the TLS handshake with", hint: "its log has the reason"},
		{name: "an intermediate CA", server: with(middle.Issue(t))},
		{name: "an intermediate CA that is missing", server: with(withoutIntermediate), problem: sameCA, hint: "ca_cert_file="},
		{name: "the intermediate CA is trusted", server: with(withoutIntermediate), roots: []*tlstest.Issuer{middle}},
		{name: "two CAs", server: with(leaf), roots: []*tlstest.Issuer{other, ca}},
		{name: "another CA", server: with(other.Issue(t)), problem: sameCA, hint: "ca_cert_file="},
		{name: "expired", server: certificate(tlstest.Expired), problem: "has expired or is not valid yet", hint: "clocks"},
		{name: "not valid yet", server: certificate(func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) }), problem: "has expired or is not valid yet", hint: "clocks"},
		{name: "an intermediate CA has expired", server: with(ca.Intermediate(t, tlstest.Expired).Issue(t)), problem: "has expired", hint: "clocks"},
		{name: "only for clients", server: certificate(func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }),
			problem: "can't be used", hint: "for a server"},
		{name: "for any purpose", server: certificate(func(c *x509.Certificate) { c.ExtKeyUsage = nil })},
		{name: "signed by a certificate that is no CA", server: with(ca.Intermediate(t, func(c *x509.Certificate) { c.IsCA = false }).Issue(t)), problem: sameCA, hint: "ca_cert_file="},
		{name: "any name", server: names("anything.example")},
		{name: "no name", server: names()},
		{name: "the name", check: true, server: names("x.example", "ctl.example")},
		{name: "the other name", check: true, server: names("ctl-internal")},
		{name: "a wildcard", check: true, server: names("*.example")},
		{name: "the address", check: true, names: []string{"", "127.0.0.1"}, server: certificate(func(c *x509.Certificate) { c.DNSNames = nil })},
		{name: "another address", check: true, names: []string{"127.0.0.2"}, server: certificate(), problem: "does not contain the daemon's name", hint: "SCHEDRESTD_TLS_NAMES=check"},
		{name: "the address that a name stands for", check: true, server: certificate(func(c *x509.Certificate) { c.DNSNames = nil }),
			problem: "does not contain the daemon's name", hint: "SCHEDRESTD_TLS_NAMES=check"},
		{name: "another name", check: true, server: names("dbd.example"), problem: "does not contain the daemon's name", hint: "SCHEDRESTD_TLS_NAMES=check"},
		{name: "another CA with the name", check: true, server: with(other.Issue(t)), problem: sameCA, hint: "ca_cert_file="},
		{name: "only a common name", check: true, server: certificate(func(c *x509.Certificate) {
			c.Subject.CommonName, c.DNSNames, c.IPAddresses = "ctl.example", nil, nil
		}), problem: "does not contain the daemon's name", hint: "SCHEDRESTD_TLS_NAMES=check"},
		{name: "no certificate", server: answering(&tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errors.New("none") }}),
			problem: "the TLS handshake with", hint: "its certificate may be missing"},
		{name: "a message without TLS", server: writing("\x00\x00\x00\x10\x2a\x00\x00\x00"), problem: plain, hint: "TLSType"},
		{name: "HTTP", server: writing("HTTP/1.1 400 Bad Request\r\n\r\n"), problem: plain, hint: "TLSType"},
		{name: "garbage", server: writing(strings.Repeat("\xff\x5a", 200)), problem: plain, hint: "TLSType"},
		{name: "a long record", server: writing("\x16\x03\x03\xff\xff"), problem: plain, hint: "TLSType"},
		{name: "closes", server: func(net.Conn) {}, problem: closed, hint: "TLSType"},
		{name: "closes after the first message", server: readHello, problem: closed, hint: "TLSType"},
		{name: "closes within an answer", server: func(nc net.Conn) { readHello(nc); io.WriteString(nc, "\x16\x03\x03\x00\x7a\x02\x00") }, problem: closed, hint: "TLSType"},
		{name: "resets", server: reset, problem: closed, hint: "TLSType"},
		{name: "says nothing", server: func(nc net.Conn) { io.Copy(io.Discard, nc) }, stalls: true, problem: "does not answer the TLS handshake in time", hint: "TLSType", kind: errs.Timeout},
		{name: "stops within an answer", server: writing("\x16\x03\x03\x00\x7a\x02\x00"), stalls: true, problem: "does not answer the TLS handshake in time", hint: "TLSType", kind: errs.Timeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			roots := tt.roots
			if roots == nil {
				roots = []*tlstest.Issuer{ca}
			}
			timeout := time.Minute
			if tt.stalls {
				timeout = 200 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			client := newClient(t, tt.check, roots...)
			if tt.names == nil {
				tt.names = []string{"ctl.example", "ctl-internal"}
			}
			for range 2 { // the second one may resume the session
				nc, err := client.Connect(ctx, dial(t, sockettest.Serve(t, "tcp", tt.server)), tt.names)
				if tt.problem != "" {
					checkProblem(t, err, tt.kind, tt.problem, tt.hint)
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				b := []byte{1}
				nc.Write(b)
				if n, err := nc.Read(b); n != 1 || b[0] != 2 || err != nil {
					t.Errorf("read %d byte %v, %v", n, b, err)
				}
				nc.Close()
			}
		})
	}
}

// checkProblem checks an error of Connect.
func checkProblem(t *testing.T, err error, kind errs.Kind, problem, hint string) {
	t.Helper()
	if kind == errs.Internal {
		kind = errs.Unavailable
	}
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Kind != kind || !strings.Contains(e.Message, problem) || !strings.Contains(e.Hint, hint) || !errors.Is(err, ErrHandshake) {
		t.Errorf("got %v (hint %q), want %q (hint %q)", err, errs.HintOf(err), problem, hint)
	}
}

// TestResume checks that a session is resumed, and that a resumed session is
// verified like a new one.
func TestResume(t *testing.T) {
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		t.Run(tls.VersionName(version), func(t *testing.T) {
			t.Parallel()
			ca := tlstest.NewCA(t)
			address := sockettest.Serve(t, "tcp", answering(&tls.Config{Certificates: []tls.Certificate{ca.Issue(t, func(c *x509.Certificate) { c.IPAddresses = nil })}, MaxVersion: version}))
			client := newClient(t, false, ca)
			connect := func() (*Conn, error) {
				nc, err := client.Connect(t.Context(), dial(t, address), []string{"another.example"})
				if err == nil {
					t.Cleanup(func() { nc.Close() })
					nc.Write([]byte{1})
					_, err = nc.Read(make([]byte, 1)) // the tickets of TLS 1.3 come with the answer
				}
				return nc, err
			}
			for i := range 3 {
				nc, err := connect()
				if err != nil || nc.ConnectionState().DidResume != (i > 0) {
					t.Fatalf("connection %d: %v", i, err)
				}
			}
			client.checkNames = true
			if _, err := connect(); err == nil || !strings.Contains(err.Error(), "does not contain the daemon's name") {
				t.Errorf("a session of a daemon with another name was resumed: %v", err)
			}
		})
	}
}

// TestVerifiedChains checks that a chain is verified again after one of its
// certificates has expired, that other chains are not accepted in its place, and
// that the memory for chains is limited.
func TestVerifiedChains(t *testing.T) {
	t.Parallel()
	hours := func(n time.Duration) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.NotAfter = time.Now().Add(n * time.Hour).Truncate(time.Second) }
	}
	ca, stranger := tlstest.NewCA(t, hours(30)), tlstest.NewCA(t)
	middle := ca.Intermediate(t, hours(10))
	chainOf := func(c tls.Certificate) (chain []*x509.Certificate) {
		for _, der := range c.Certificate {
			cert, err := x509.ParseCertificate(der)
			if err != nil {
				t.Fatal(err)
			}
			chain = append(chain, cert)
		}
		return chain
	}
	c := newClient(t, false, ca)
	for name, tt := range map[string]struct {
		chain []*x509.Certificate
		hours time.Duration // until the first of its certificates expires
	}{
		"the leaf expires first":         {chainOf(ca.Issue(t, hours(5))), 5},
		"the intermediate expires first": {chainOf(middle.Issue(t, hours(20))), 10},
		"the CA expires first":           {chainOf(ca.Issue(t, hours(40))), 30},
	} {
		clear(c.verified)
		if err := c.verifyChain(tt.chain); err != nil || len(c.verified) != 1 {
			t.Fatalf("%s: %v, %d chains", name, err, len(c.verified))
		}
		roots := c.roots
		c.roots = newClient(t, false, stranger).roots // shows whether the chain is verified again
		for key, expires := range c.verified {
			if diff := time.Until(expires) - tt.hours*time.Hour; diff < -time.Minute || diff > time.Minute {
				t.Errorf("%s: expires in %v", name, time.Until(expires))
			}
			if err := c.verifyChain(tt.chain); err != nil {
				t.Errorf("%s: verified again: %v", name, err)
			}
			c.verified[key] = time.Now()
		}
		if err := c.verifyChain(tt.chain); err == nil {
			t.Errorf("%s: not verified after it has expired", name)
		}
		c.roots = roots
	}
	forged := chainOf(stranger.Issue(t))
	if err := c.verifyChain(append(forged, chainOf(ca.Issue(t))...)); err == nil {
		t.Error("a chain of another CA was accepted")
	}
	for range maxVerified + 5 {
		if err := c.verifyChain(chainOf(ca.Issue(t))); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.verified); n > maxVerified {
		t.Errorf("%d chains", n)
	}
}

// TestCutOff checks that only close_notify ends a stream.
func TestCutOff(t *testing.T) {
	t.Parallel()
	ca := tlstest.NewCA(t)
	config := &tls.Config{Certificates: []tls.Certificate{ca.Issue(t)}}
	tests := []struct {
		name string
		end  func(raw *net.TCPConn, server *tls.Conn)
		want error
	}{
		{name: "close_notify", end: func(_ *net.TCPConn, s *tls.Conn) { s.CloseWrite() }, want: io.EOF},
		{name: "FIN", end: func(raw *net.TCPConn, _ *tls.Conn) { raw.CloseWrite() }, want: ErrCutOff},
		{name: "within the header of a record", end: func(raw *net.TCPConn, _ *tls.Conn) { raw.Write([]byte{23, 3}); raw.CloseWrite() }, want: ErrCutOff},
		{name: "within a record", end: func(raw *net.TCPConn, _ *tls.Conn) { raw.Write([]byte{23, 3, 3, 0, 100, 1, 2}); raw.CloseWrite() }, want: ErrCutOff},
		{name: "RST", end: func(raw *net.TCPConn, _ *tls.Conn) { raw.SetLinger(0); raw.Close() }, want: syscall.ECONNRESET},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			release := make(chan struct{})
			address := sockettest.Serve(t, "tcp", func(nc net.Conn) {
				server := tls.Server(nc, config)
				server.Write([]byte("answer"))
				<-release
				tt.end(nc.(*net.TCPConn), server)
				io.Copy(io.Discard, nc)
			})
			nc, err := newClient(t, false, ca).Connect(t.Context(), dial(t, address), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			text := make([]byte, 6)
			if _, err := io.ReadFull(nc, text); err != nil || string(text) != "answer" {
				t.Fatal(err)
			}
			close(release)
			n, err := nc.Read(text)
			if n != 0 || !errors.Is(err, tt.want) || tt.want != io.EOF && errors.Is(err, io.EOF) {
				t.Errorf("%d bytes, %v; want %v", n, err, tt.want)
			}
		})
	}
}

// TestHasNoInput checks what a client sees between two answers.
func TestHasNoInput(t *testing.T) {
	t.Parallel()
	ca := tlstest.NewCA(t)
	config := &tls.Config{Certificates: []tls.Certificate{ca.Issue(t)}} // sends session tickets
	tests := []struct {
		name string
		act  func(raw *net.TCPConn, server *tls.Conn)
		want bool
	}{
		{name: "nothing", act: func(*net.TCPConn, *tls.Conn) {}, want: true},
		{name: "part of a record", act: func(raw *net.TCPConn, _ *tls.Conn) { raw.Write([]byte{23, 3}) }, want: true},
		{name: "data", act: func(_ *net.TCPConn, s *tls.Conn) { s.Write([]byte("x")) }},
		{name: "close_notify", act: func(_ *net.TCPConn, s *tls.Conn) { s.CloseWrite() }},
		{name: "FIN", act: func(raw *net.TCPConn, _ *tls.Conn) { raw.CloseWrite() }},
		{name: "RST", act: func(raw *net.TCPConn, _ *tls.Conn) { raw.SetLinger(0); raw.Close() }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			acted := make(chan struct{})
			address := sockettest.Serve(t, "tcp", func(nc net.Conn) {
				server := tls.Server(nc, config)
				if server.Handshake() == nil {
					tt.act(nc.(*net.TCPConn), server)
				}
				close(acted)
				io.Copy(io.Discard, nc)
			})
			nc, err := newClient(t, false, ca).Connect(t.Context(), dial(t, address), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			<-acted
			for start := time.Now(); nc.HasNoInput() != tt.want; time.Sleep(time.Millisecond) {
				if time.Since(start) > 30*time.Second {
					t.Fatalf("never %v", tt.want)
				}
			}
			if got := nc.HasNoInput(); got != tt.want && tt.name != "data" { // the data has been read
				t.Errorf("afterwards: %v", got)
			}
		})
	}
}

// TestUsableAfterHasNoInput checks that HasNoInput neither loses data nor ends
// the stream.
func TestUsableAfterHasNoInput(t *testing.T) {
	t.Parallel()
	ca := tlstest.NewCA(t)
	address := sockettest.Serve(t, "tcp", answering(&tls.Config{Certificates: []tls.Certificate{ca.Issue(t)}}))
	nc, err := newClient(t, false, ca).Connect(t.Context(), dial(t, address), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for range 3 {
		if !nc.HasNoInput() {
			t.Fatal("input before a request")
		}
	}
	b := []byte{7}
	nc.Write(b)
	if _, err := nc.Read(b); err != nil || !bytes.Equal(b, []byte{8}) {
		t.Errorf("%v, %v", b, err)
	}
}
