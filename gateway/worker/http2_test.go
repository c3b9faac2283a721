package worker

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/worker/keys"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// collectOffences calls act with the client's end of a connection, and returns
// the offences that are reported until the connection is closed. The connection
// uses TLS unless config is nil. The patience argument is the time limit for a
// handshake and for a header.
func collectOffences(t *testing.T, patience time.Duration, config *tls.Config, act func(net.Conn)) (offences []work.OffenceKind) {
	t.Helper()
	limits := testLimits
	limits.ReadHeader = patience
	st := newTestServer(t, work.Setup{Limits: limits, Admission: testAdmission}, nil)
	reports, closed := make(chan work.OffenceKind, 1000), make(chan struct{})
	st.report = func(m ipc.Message) error {
		if o, ok := m.(*work.Offence); ok {
			reports <- o.Kind
		}
		return nil
	}
	client, c := st.pair()
	added := st.add(c)
	c.Closed = func() { added.Closed(); close(closed) }
	if config == nil {
		go st.newHTTP1Conn(c, c, added).Serve()
	} else {
		added.Attach(c, c, nil)
		go st.handshake(c, added, tls.Server(c, config))
	}
	act(client)
	_ = client.Close()
	select {
	case <-closed:
	case <-time.After(time.Minute):
		t.Fatal("the connection is not closed")
	}
	st.table.Flush()
	close(reports)
	for offence := range reports {
		offences = append(offences, offence)
	}
	return offences
}

// sends returns a client that sends text and then reads. The client stops
// reading when it has received every text in the argument "has", or when the
// connection ends. If one of these texts is "", the client reads until the
// connection ends.
func sends(text string, has ...string) func(net.Conn) {
	return func(c net.Conn) {
		c.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(c, text)
		var got []byte
		missing := func(text string) bool { return text == "" || !bytes.Contains(got, []byte(text)) }
		for buf := make([]byte, 1024); slices.ContainsFunc(has, missing); {
			n, err := c.Read(buf)
			if got = append(got, buf[:n]...); err != nil {
				return
			}
		}
	}
}

// withTLS returns a client that completes a handshake and then calls act.
func withTLS(config *tls.Config, act func(net.Conn)) func(net.Conn) {
	return func(c net.Conn) {
		tlsConn := tls.Client(c, config)
		c.SetDeadline(time.Now().Add(time.Minute))
		err := tlsConn.Handshake()
		switch {
		case err != nil:
		case act != nil:
			act(tlsConn)
		default:
			_, _ = tlsConn.Read(make([]byte, 1)) // the server's part of a handshake ends after the client's part
		}
	}
}

// TestOffences checks that the worker reports behaviour that no honest client
// shows. It must not report a connection that breaks or is slow, a client that
// rejects our certificate, or a handshake that fails because the keeper does
// not sign.
func TestOffences(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	leaf, _ := selfSigned(t, key)
	cert := tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}
	server := &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS13}
	clientAuth := server.Clone()
	clientAuth.ClientAuth, clientAuth.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	unsigned := loadedKeys(t, refusingKeeper(t)).TLS()

	trusting := &tls.Config{InsecureSkipVerify: true}
	stranger := &tls.Config{ServerName: "gateway", RootCAs: x509.NewCertPool()}
	named := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{cert}}
	old := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}
	h2 := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}
	start := preface + rawFrame(4, 0, 0, "")
	get := func(stream uint32) string { return rawFrame(1, 5, stream, "\x82\x87\x84\x01\x03lab") }
	// A header block of 32 KB that is encoded in 700 bytes.
	tooLarge := func(stream uint32) string {
		return rawFrame(1, 5, stream, "\x82\x87\x84\x01\x03lab\x40\x01x\x7f\x81\x03"+strings.Repeat("a", 512)+strings.Repeat("\xbe", 64))
	}
	const done = "\x00\x00\x00\x00\x01" // an empty DATA frame that ends a stream, or an acknowledgement of SETTINGS
	// The type, flags and stream of the DATA frame that ends an answer. Streams
	// may be answered in any order. Their numbers are above 6, because the
	// server's SETTINGS contain the same bytes with the numbers 1 to 6.
	ended := func(stream byte) string { return "\x00\x01\x00\x00\x00" + string(rune(stream)) }

	request, credential := []work.OffenceKind{work.BadRequest}, []work.OffenceKind{work.BadCredential}
	for _, tt := range []struct {
		name   string
		config *tls.Config
		act    func(net.Conn)
		want   []work.OffenceKind
	}{
		{"connects and disconnects", nil, func(net.Conn) {}, nil},
		{"a request", nil, sends("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", ""), nil},
		{"no request", nil, sends("this is no request\r\n\r\n", ""), request},
		{"no Host", nil, sends("GET / HTTP/1.1\r\n\r\n", ""), request},
		{"a long line", nil, sends("GET /"+strings.Repeat("x", 100_000), ""), request},
		{"a long header", nil, sends("GET / HTTP/1.1\r\nX: "+strings.Repeat("x", 100_000), ""), request},
		{"another coding", nil, sends("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", ""), request},
		{"an expectation", nil, sends("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nExpect: wonders\r\n\r\n", ""), request},
		{"another version", nil, sends("GET / HTTP/3.7\r\nHost: x\r\n\r\n", ""), request},
		{"HTTP/2 in the open", nil, sends(start, ""), request},
		{"TLS in the open", nil, withTLS(trusting, nil), request},
		{"half a header, and the end", nil, func(c net.Conn) { io.WriteString(c, "GET / HTTP/1.1\r\nHo") }, nil},

		{"TLS: connects and disconnects", server, func(net.Conn) {}, nil},
		{"TLS: half a hello, and the end", server, func(c net.Conn) { io.WriteString(c, "\x16\x03\x01\x02\x00\x01\x00\x01") }, nil},
		{"TLS: garbage", server, sends("\x00\x01garbage, and more of it", ""), request},
		{"TLS: garbage in a record", server, sends("\x16\x03\x01\x00\x06\x01\x00\x00\x02\xff\xff", ""), request},
		{"TLS: HTTP in the open", server, sends("GET / HTTP/1.1\r\nHost: x\r\n\r\n", ""), request},
		{"TLS: an old version", server, withTLS(old, nil), request},
		{"TLS: does not trust our issuer", server, withTLS(stranger, nil), nil},
		{"TLS: no certificate", clientAuth, withTLS(trusting, nil), request},
		{"TLS: a certificate of no user", clientAuth, withTLS(named, nil), credential},
		{"TLS: the keeper does not sign", unsigned, withTLS(trusting, nil), nil},
		{"TLS: no request", server, withTLS(trusting, sends("this is no request\r\n\r\n", "")), request},
		{"TLS: garbage behind the handshake", server, func(c net.Conn) {
			if tls.Client(c, trusting).Handshake() == nil {
				sends("\x17\x03\x03\x00\x20"+strings.Repeat("x", 32), "")(c)
			}
		}, request},

		{"HTTP/2: a request", server, withTLS(h2, sends(start+get(1), done)), nil},
		{"HTTP/2: not its preface", server, withTLS(h2, sends("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "")), request},
		{"HTTP/2: connects and disconnects", server, withTLS(h2, func(c net.Conn) { c.Close() }), nil},
		{"HTTP/2: half a preface, and the end", server, withTLS(h2, func(c net.Conn) { io.WriteString(c, "PRI *"); c.Close() }), nil},
		{"HTTP/2: a frame first", server, withTLS(h2, sends(preface+get(1), "")), request},
		{"HTTP/2: a promise", server, withTLS(h2, sends(start+rawFrame(5, 4, 1, "\x00\x00\x00\x02\x82"), "")), request},
		{"HTTP/2: HPACK that is none", server, withTLS(h2, sends(start+rawFrame(1, 5, 1, "\xff\xff\xff\xff\xff"), "")), request},
		{"HTTP/2: too long a frame", server, withTLS(h2, sends(start+"\xff\xff\xff\x00\x00\x00\x00\x00\x01", "")), request},
		{"HTTP/2: a name in capitals, twice", server, withTLS(h2, sends(start+rawFrame(1, 5, 1, "\x82\x87\x84\x00\x01X\x011")+rawFrame(1, 5, 3, "\x82\x87\x84\x00\x01X\x011")+get(5), done)), slices.Repeat(request, 2)},
		{"HTTP/2: too large a header, twice", server, withTLS(h2, sends(start+tooLarge(7)+tooLarge(9)+get(11), ended(7), ended(9), ended(11))), slices.Repeat(request, 2)},
		{"HTTP/2: too large a header, by a client that changes the table", server, withTLS(h2, sends(preface+rawFrame(4, 0, 0, "\x00\x01\x00\x00\x00\x00")+
			rawFrame(4, 0, 0, "\x00\x01\x00\x01\x00\x00")+tooLarge(7)+get(9), ended(7), ended(9))), request},
		{"HTTP/2: more in a stream that has ended", server, withTLS(h2, func(c net.Conn) {
			sends(start+get(1), done)(c)
			sends(rawFrame(0, 1, 1, "more")+rawFrame(6, 0, 0, "12345678"), "12345678")(c)
		}), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := collectOffences(t, time.Minute, tt.config, tt.act); !slices.Equal(got, tt.want) {
				t.Errorf("the dispatcher receives %v, want %v", got, tt.want)
			}
		})
	}
	for _, tt := range []struct {
		name   string
		config *tls.Config
		text   string
	}{
		{"half a header, and no more", nil, "GET / HTTP/1.1\r\nHo"},
		{"TLS: says nothing", server, ""},
		{"TLS: half a hello, and no more", server, "\x16\x03\x01\x02\x00\x01\x00\x01"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := collectOffences(t, 100*time.Millisecond, tt.config, sends(tt.text, "")); len(got) > 0 {
				t.Errorf("the dispatcher receives %v about a slow client", got)
			}
		})
	}
}

// TestFloods checks that a flood of frames ends the connection and is reported
// once. A client that sends only as many frames as permitted must not be
// reported.
func TestFloods(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	leaf, _ := selfSigned(t, key)
	server := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}}, NextProtos: []string{"h2"}}
	client := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}
	const block, more = "\x82\x87\x84\x01\x03lab", 3 * frameBurst
	post := rawFrame(1, 4, 1, "\x83\x87\x84\x01\x03lab")
	for _, tt := range []struct {
		name, before, frame, after string
	}{
		{"PING", "", rawFrame(6, 0, 0, "12345678"), ""},
		{"SETTINGS", "", rawFrame(4, 0, 0, "\x00\x04\x00\x00\xff\xff"), ""},
		{"WINDOW_UPDATE", "", rawFrame(8, 0, 0, "\x00\x00\x00\x01"), ""},
		{"PRIORITY", "", rawFrame(2, 0, 3, "\x00\x00\x00\x01\x00"), ""},
		{"an unknown kind", "", rawFrame(99, 0, 0, "?"), ""},
		{"empty DATA", post, rawFrame(0, 0, 1, ""), rawFrame(0, 1, 1, "{}")},
		{"DATA of a byte each", post, rawFrame(0, 0, 1, " "), rawFrame(0, 1, 1, "{}")},
		{"CONTINUATION", rawFrame(1, 1, 1, block), rawFrame(9, 0, 1, ""), rawFrame(9, 4, 1, "")},
		{"RST_STREAM", rawFrame(1, 5, 1, block), rawFrame(3, 0, 1, "\x00\x00\x00\x08"), ""},
	} {
		start := preface + rawFrame(4, 0, 0, "") + tt.before
		ping := rawFrame(6, 0, 0, "the last")
		for n, want := range map[int]int{frameBurst / 2: 0, more: 1} {
			text, await := start+strings.Repeat(tt.frame, n)+tt.after+ping, "the last"
			if want > 0 {
				await = "" // read until the connection ends
			}
			if got := collectOffences(t, time.Minute, server, withTLS(client, sends(text, await))); len(got) != want {
				t.Errorf("%d of %s: the dispatcher receives %v, want %d", n, tt.name, got, want)
			}
		}
	}
}

// refusingKeeper returns Keys whose keeper refuses to sign.
func refusingKeeper(t *testing.T) *keys.Keys {
	t.Helper()
	keeper, fd, err := ipc.Pair(ipc.Keeper, ipc.Worker)
	must(t, err)
	t.Cleanup(func() { keeper.Close() })
	k := keys.New()
	must(t, k.Connect(fd))
	go func() {
		for {
			m, err := keeper.Receive()
			if err != nil {
				return
			}
			if question, ok := m.Message.(*query.Sign); ok {
				_ = keeper.Send(&query.Signed{ID: question.ID})
			}
		}
	}()
	return k
}

// loadedKeys makes k load a new certificate, and returns k.
func loadedKeys(t *testing.T, k *keys.Keys) *keys.Keys {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	leaf, _ := selfSigned(t, key)
	var fds []int
	for _, text := range [][]byte{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw}), nil, nil} {
		fd, err := unix.MemfdCreate("keys", unix.MFD_CLOEXEC)
		must(t, err)
		_, err = unix.Write(fd, text)
		must(t, err)
		fds = append(fds, fd)
	}
	if r := k.Load(&work.Keys{PublicKeys: ipc.PublicKeys{TLS: true}}, fds); !r.OK {
		t.Fatal(r.Reason)
	}
	return k
}

// selfSigned returns a certificate for key, in two forms.
func selfSigned(t *testing.T, key crypto.Signer) (*x509.Certificate, tls.Certificate) {
	t.Helper()
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"gateway"}, NotAfter: time.Now().AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	must(t, err)
	leaf, err := x509.ParseCertificate(der)
	must(t, err)
	return leaf, tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
