package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/tlsconn"
	"schedrestd/rpc/tlsconn/tlstest"
)

// A transport is the way in which daemons are reached.
type transport struct {
	name   string
	server *tls.Config // nil for plain connections
	client *tlsconn.Client
}

var plain = transport{name: "plain"}

// newTLS returns a transport with a new CA.
func newTLS(t testing.TB) transport {
	t.Helper()
	ca := tlstest.NewCA(t)
	c, err := tlsconn.ReadClient("ca.pem", ca.PEM(), true)
	if err != nil {
		t.Fatal(err)
	}
	certificate := ca.Issue(t, func(c *x509.Certificate) { c.DNSNames = []string{"ctl", "bak", "dbd"} })
	return transport{name: "TLS", server: &tls.Config{Certificates: []tls.Certificate{certificate}}, client: c}
}

func forEachTransport(t *testing.T, test func(*testing.T, transport)) {
	for _, over := range []transport{plain, newTLS(t)} {
		t.Run(over.name, func(t *testing.T) {
			t.Parallel()
			test(t, over)
		})
	}
}

// reset makes the kernel reset a connection when it is closed.
func reset(nc net.Conn) { tcp(nc).SetLinger(0) }

func tcp(nc net.Conn) *net.TCPConn {
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn()
	}
	return nc.(*net.TCPConn)
}

// scriptConns calls act with each connection to the daemon whose address it returns.
func scriptConns(t *testing.T, name string, act func(net.Conn)) client.Address {
	return client.Address{Name: name, Network: "tcp", Address: sockettest.Serve(t, "tcp", act)}
}

// TestTruncatedAnswer checks answers that end before their length, at the end of
// a record and without close_notify. None may be taken for a whole answer.
func TestTruncatedAnswer(t *testing.T) {
	t.Parallel()
	over := newTLS(t)
	const nodes = 5000 // several records
	for name, end := range map[string]func(nc net.Conn){
		"FIN":          func(nc net.Conn) { tcp(nc).CloseWrite() },
		"RST":          func(nc net.Conn) { reset(nc); tcp(nc).Close() },
		"close_notify": func(nc net.Conn) { nc.(*tls.Conn).CloseWrite() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, prompt := range []bool{false, true} {
				p := scriptOver(t, over, "ctl", func(nc net.Conn, f message.Frame) {
					if f.Header.Type == message.RequestPing {
						rc(nc, f.Header.Version, 0)
						return
					}
					var list message.NodeInfo
					for range nodes {
						list.Nodes.List = append(list.Nodes.List, model.Node{Name: "node"})
					}
					b, err := message.Encode(f.Header.Version, 0, message.ResponseNodeInfo, nil, &list)
					if err != nil {
						panic(err)
					}
					nc.Write(b[:len(b)-1000])
					end(nc)
					io.Copy(io.Discard, tcp(nc))
				})
				c := client.New(client.Config{Controllers: []client.Address{p.Address}, TLS: over.client})
				got := 0
				_, err := c.Nodes(context.Background(), ann, model.Query{Prompt: prompt}, func(*model.Node) error { got++; return nil })
				if err == nil || errs.KindOf(err) != errs.BadAnswer || !prompt && got > 0 || got >= nodes {
					t.Errorf("prompt %v: %d records, %v", prompt, got, err)
				}
			}
		})
	}
}

// TestHandshakeFails checks daemons whose handshake fails. A backup answers
// instead, and also carries out a submission, because the primary can't have
// received it. Without a backup, the error says what is wrong.
func TestHandshakeFails(t *testing.T) {
	t.Parallel()
	over, other := newTLS(t), newTLS(t)
	readHello := func(nc net.Conn) { nc.Read(make([]byte, 16<<10)) }
	tests := []struct {
		name    string
		act     func(net.Conn)
		kind    errs.Kind
		problem string
	}{
		{name: "another CA", act: func(nc net.Conn) { tls.Server(nc, other.server).Handshake() }, kind: errs.Unavailable, problem: "is not from the cluster's CA"},
		{name: "no TLS", act: func(nc net.Conn) { readHello(nc); io.WriteString(nc, "\x00\x00\x00\x08garbage!") }, kind: errs.Unavailable, problem: "does not speak TLS"},
		{name: "closes", act: func(net.Conn) {}, kind: errs.Unavailable, problem: "closed the connection in the TLS handshake"},
		{name: "stalls", act: func(nc net.Conn) { io.Copy(io.Discard, nc) }, kind: errs.Timeout, problem: "does not answer the TLS handshake in time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			primary := scriptConns(t, "ctl", tt.act)
			backup := scriptOver(t, over, "bak", func(nc net.Conn, f message.Frame) {
				if f.Header.Type == message.RequestSubmitBatchJob {
					answer(nc, f.Header.Version, message.ResponseSubmitBatchJob, &message.SubmitResponse{})
					return
				}
				rc(nc, f.Header.Version, 0)
			})
			timeout := patience(tt.kind)
			alone := client.New(client.Config{Controllers: []client.Address{primary}, Timeout: timeout, TLS: over.client})
			err := alone.Verify(context.Background(), ann)
			if errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.problem) || !strings.Contains(errs.HintOf(err), "TLS") {
				t.Errorf("alone: %v %v (hint %q)", errs.KindOf(err), err, errs.HintOf(err))
			}
			if pings, err := alone.Ping(context.Background(), ann); err != nil || pings[0].Responding || pings[0].TimedOut != (tt.kind == errs.Timeout) {
				t.Errorf("ping: %+v, %v", pings, err)
			}
			accounting := client.NewAccounting(client.Config{Accounting: []client.Address{primary}, Timeout: timeout, TLS: over.client})
			if err := accounting.Verify(context.Background(), ann); errs.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("accounting: %v", err)
			}
			both := client.New(client.Config{Controllers: []client.Address{primary, backup.Address}, Timeout: 4 * time.Second, TLS: over.client})
			if _, err := both.Submit(context.Background(), ann, &model.JobDesc{Script: "x"}); err != nil || backup.count(message.RequestSubmitBatchJob) != 1 {
				t.Errorf("submit: %v", err)
			}
		})
	}
}

// TestTLSRequired checks clients without TLS, of daemons with TLS.
func TestTLSRequired(t *testing.T) {
	t.Parallel()
	read := func(nc net.Conn) { nc.Read(make([]byte, 1<<10)) }
	tests := []struct {
		name       string
		act        func(net.Conn)
		controller bool // only a controller does that
		stalls     bool
		problem    string
	}{
		{name: "an alert", act: func(nc net.Conn) { read(nc); io.WriteString(nc, "\x15\x03\x03\x00\x02\x02\x0a") }, problem: "requires TLS"},
		{name: "an alert of an old version", act: func(nc net.Conn) { read(nc); io.WriteString(nc, "\x15\x03\x01\x00\x02\x02\x46") }, problem: "requires TLS"},
		{name: "an answer of Slurm 25.11", act: func(nc net.Conn) { read(nc); rc(nc, codec.V2511, fault.TLSRequired) }, controller: true, problem: "requires TLS"},
		{name: "closes", act: func(nc net.Conn) { read(nc) }, problem: "close"},
		{name: "waits for more", act: func(nc net.Conn) { io.Copy(io.Discard, nc) }, stalls: true, problem: "does not answer in time"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			at := scriptConns(t, "ctl", tt.act)
			timeout := time.Minute
			if tt.stalls {
				timeout = 200 * time.Millisecond
			}
			check := func(err error) {
				t.Helper()
				if err == nil || !strings.Contains(err.Error(), tt.problem) || !strings.Contains(errs.HintOf(err), "TLSType=tls/s2n") || code(err) == errs.OutcomeUnknown {
					t.Errorf("%v (hint %q)", err, errs.HintOf(err))
				}
			}
			check(client.New(client.Config{Controllers: []client.Address{at}, Timeout: timeout}).Verify(context.Background(), ann))
			if !tt.controller {
				check(client.NewAccounting(client.Config{Accounting: []client.Address{at}, Timeout: timeout}).Verify(context.Background(), ann))
			}
		})
	}
}

// TestUnixWithoutTLS checks that a client with TLS uses none for a UNIX socket.
func TestUnixWithoutTLS(t *testing.T) {
	t.Parallel()
	address := sockettest.Serve(t, "unix", func(nc net.Conn) {
		b := make([]byte, 4)
		if _, err := io.ReadFull(nc, b); err == nil && binary.BigEndian.Uint32(b) < 1<<20 {
			io.CopyN(io.Discard, nc, int64(binary.BigEndian.Uint32(b)))
			rc(nc, codec.Newest, 0)
		}
	})
	c := client.New(client.Config{Controllers: []client.Address{{Name: "ctl", Network: "unix", Address: address}}, TLS: newTLS(t).client})
	if err := c.Verify(context.Background(), ann); err != nil {
		t.Error(err)
	}
}

// TestSessionOverTLS checks that a session of the accounting daemon is kept, is
// opened again after the daemon has ended it, and is not used after it has sent
// something without a request.
func TestSessionOverTLS(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*tls.Conn){
		"close_notify": func(nc *tls.Conn) { nc.Close() },
		"FIN":          func(nc *tls.Conn) { tcp(nc).Close() },
		"RST":          func(nc *tls.Conn) { reset(nc); tcp(nc).Close() },
		"data":         func(nc *tls.Conn) { nc.Write([]byte{0, 0, 0, 2, 0, 0}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			over := newTLS(t)
			var mu sync.Mutex
			var last *tls.Conn
			k := newKeeper(t)
			k.Address.Address = sockettest.Serve(t, "tcp", func(nc net.Conn) {
				secure := tls.Server(nc, over.server)
				mu.Lock()
				last = secure
				mu.Unlock()
				k.serve(secure)
				secure.Close()
			})
			a := client.NewAccounting(client.Config{Accounting: []client.Address{k.Address}, TLS: over.client, Timeout: time.Minute})
			t.Cleanup(func() { // otherwise the last session would stay open
				mu.Lock()
				defer mu.Unlock()
				last.Close()
			})
			good := model.Credential{Token: "good"}
			for range 3 {
				mustAsk(t, a, good)
			}
			if n := len(k.openings()); n != 1 {
				t.Fatalf("%d sessions, want 1", n)
			}
			mu.Lock()
			end(last)
			mu.Unlock()
			for range 3 {
				mustAsk(t, a, good)
			}
			if n := len(k.openings()); n != 1 {
				t.Errorf("%d sessions after the end, want 1", n)
			}
		})
	}
}
