package client_test

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// A peer is a controller that follows a script. The script is a function that
// is called for each complete request, with its connection and its header.
type peer struct {
	client.Address
	mu   sync.Mutex
	seen []message.Header // headers of the requests, in order
}

func script(t testing.TB, name string, act func(nc net.Conn, request message.Header)) *peer {
	t.Helper()
	return scriptFrames(t, name, func(nc net.Conn, f message.Frame) { act(nc, f.Header) })
}

// scriptBodies is like script, but act also gets the body of the request, and is
// not called for pings, which are answered.
func scriptBodies(t testing.TB, act func(nc net.Conn, request message.Header, body []byte)) *peer {
	t.Helper()
	return scriptFrames(t, "ctl", func(nc net.Conn, f message.Frame) {
		if f.Header.Type == message.RequestPing {
			rc(nc, f.Header.Version, 0)
			return
		}
		act(nc, f.Header, f.Body)
	})
}

func scriptFrames(t testing.TB, name string, act func(nc net.Conn, f message.Frame)) *peer {
	t.Helper()
	return scriptOver(t, plain, name, act)
}

// scriptOver is like scriptFrames, for a controller that is reached in the given
// way.
func scriptOver(t testing.TB, over transport, name string, act func(nc net.Conn, f message.Frame)) *peer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if over.server != nil {
		ln = tls.NewListener(ln, over.server)
	}
	p := &peer{Address: client.Address{Name: name, Network: "tcp", Address: ln.Addr().String()}}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			wait.Go(func() {
				defer nc.Close()
				nc.SetDeadline(time.Now().Add(30 * time.Second))
				b, err := wire.Read(nc, 1<<20)
				if err != nil {
					return
				}
				f, _ := message.ParseFront(b)
				p.mu.Lock()
				p.seen = append(p.seen, f.Header)
				p.mu.Unlock()
				act(nc, f)
			})
		}
	})
	t.Cleanup(func() { ln.Close(); wait.Wait() })
	return p
}

// dialPipe returns a function that connects to a controller in the same bubble of
// synctest, which answers each request with act.
func dialPipe(act func(nc net.Conn, f message.Frame)) func(context.Context, client.Address) (net.Conn, error) {
	return func(context.Context, client.Address) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			b, err := wire.Read(theirs, 1<<20)
			if err != nil {
				return
			}
			f, _ := message.ParseFront(b)
			act(theirs, f)
		}()
		return remotePipe{ours}, nil
	}
}

// remotePipe is a pipe to a daemon on another machine.
type remotePipe struct{ net.Conn }

func (remotePipe) Server() (uid uint32, known bool) { return 0, false }

// requests returns the requests since the last call.
func (p *peer) requests() (types []message.Type, versions []codec.Version) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.seen {
		types, versions = append(types, h.Type), append(versions, h.Version)
	}
	p.seen = nil
	return types, versions
}

func answer(nc net.Conn, v codec.Version, t message.Type, body message.Body) {
	b, err := message.Encode(v, 0, t, nil, body)
	if err != nil {
		panic(err)
	}
	nc.Write(b)
}

func rc(nc net.Conn, v codec.Version, code uint32) {
	answer(nc, v, message.ResponseRC, &message.RC{Code: code})
}

// Each function in refusals refuses an unsupported version in the same way as
// some releases of Slurm.
var refusals = map[string]func(nc net.Conn){
	"22.05 closes":                          func(net.Conn) {},
	"24.11 answers in a version of its own": func(nc net.Conn) { rc(nc, codec.V2411, fault.Authentication) },
	"26.05 speaks HTTP": func(nc net.Conn) {
		io.WriteString(nc, "HTTP/1.1 405 Method Not Allowed\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n")
	},
}

// down returns the versions from the newest down to v.
func down(v codec.Version) (list []codec.Version) {
	for w := codec.Newest; w >= v; w-- {
		list = append(list, w)
	}
	return list
}

func TestVersionProbe(t *testing.T) {
	t.Parallel()
	tests := []struct {
		refusal string
		newest  codec.Version
		probes  []codec.Version
	}{
		{refusal: "22.05 closes", newest: codec.V2205, probes: down(codec.V2205)},
		{refusal: "22.05 closes", newest: codec.Newest, probes: down(codec.Newest)},
		{refusal: "24.11 answers in a version of its own", newest: codec.V2411, probes: []codec.Version{codec.Newest, codec.V2411}},
		{refusal: "26.05 speaks HTTP", newest: codec.V2505, probes: down(codec.V2505)},
		{refusal: "26.05 speaks HTTP", newest: codec.V2605, probes: down(codec.V2605)},
	}
	for _, tt := range tests {
		t.Run(tt.refusal, func(t *testing.T) {
			p := script(t, "ctl", func(nc net.Conn, request message.Header) {
				if request.Version > tt.newest {
					refusals[tt.refusal](nc)
					return
				}
				rc(nc, request.Version, 0)
			})
			c := client.New(client.Config{Controllers: []client.Address{p.Address}})
			for i, want := range [][]codec.Version{append(tt.probes, tt.newest), {tt.newest}} {
				if err := c.Verify(context.Background(), ann); err != nil {
					t.Fatal(err)
				}
				if _, got := p.requests(); !cmp.Equal(want, got) {
					t.Errorf("call %d: asked in %v, want %v", i, got, want)
				}
			}
		})
	}
}

// TestVersionProbeWithAWrongCredential checks that the client learns a
// controller's version even if the controller refuses the credential.
func TestVersionProbeWithAWrongCredential(t *testing.T) {
	t.Parallel()
	p := script(t, "ctl", func(nc net.Conn, request message.Header) { rc(nc, request.Version, fault.Authentication) })
	c := client.New(client.Config{Controllers: []client.Address{p.Address}})
	if err := c.Verify(context.Background(), ann); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("got %v", err)
	}
	if _, got := p.requests(); !cmp.Equal([]codec.Version{codec.Newest, codec.Newest}, got) {
		t.Errorf("asked in %v", got)
	}
}

// TestVersionIsProbedAgain checks a controller that is restarted with an older
// release. That release refuses the newer version in one of three ways. If the
// refusal shows that a submission was not carried out, the client must probe
// the version and then submit the job again.
func TestVersionIsProbedAgain(t *testing.T) {
	t.Parallel()
	for name, refuse := range refusals {
		t.Run(name, func(t *testing.T) {
			newest, submitted := codec.Newest, 0
			p := script(t, "ctl", func(nc net.Conn, request message.Header) {
				switch {
				case request.Version > newest:
					refuse(nc)
				case request.Type == message.RequestPing:
					rc(nc, request.Version, 0)
				default:
					submitted++
					answer(nc, request.Version, message.ResponseSubmitBatchJob, &message.SubmitResponse{})
				}
			})
			c := client.New(client.Config{Controllers: []client.Address{p.Address}})
			if err := c.Verify(context.Background(), ann); err != nil {
				t.Fatal(err)
			}
			newest = codec.V2411
			_, err := c.Submit(context.Background(), ann, &model.JobDesc{})
			if unclear := strings.HasPrefix(name, "22.05"); unclear {
				if code(err) != "outcome_unknown" {
					t.Errorf("submit: %v", err)
				}
				if _, err := c.Submit(context.Background(), ann, &model.JobDesc{}); err != nil || submitted != 1 {
					t.Errorf("submit again: %v, done %d times", err, submitted)
				}
			} else if err != nil || submitted != 1 {
				t.Errorf("submit: %v, done %d times", err, submitted)
			}
			if err := c.Verify(context.Background(), ann); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

func code(err error) string {
	if e, ok := errors.AsType[*errs.Error](err); ok {
		return e.Code
	}
	return ""
}

// The list "bad" contains controllers that misbehave, with the expected
// results. All of these controllers answer pings correctly.
var bad = []struct {
	name  string
	act   func(nc net.Conn, v codec.Version)
	kind  errs.Kind
	again bool // a request that may be repeated is sent again
	clear bool // a submission can't have been carried out, so its outcome is known
}{
	{name: "closes", act: func(net.Conn, codec.Version) {}, kind: errs.BadAnswer, again: true},
	{name: "closes after ten bytes", act: func(nc net.Conn, v codec.Version) {
		io.WriteString(nc, "\x00\x00\x10\x00\x2a\x00\x00\x40\x07\xd8")
	}, kind: errs.BadAnswer},
	{name: "resets", act: func(nc net.Conn, v codec.Version) { reset(nc) }, kind: errs.BadAnswer, again: true},
	{name: "garbage", act: func(nc net.Conn, v codec.Version) {
		io.WriteString(nc, "\x00\x00\x00\x20"+strings.Repeat("garbage!", 4))
	}, kind: errs.BadAnswer},
	{name: "four gigabytes", act: func(nc net.Conn, v codec.Version) { io.WriteString(nc, "\xff\xff\xff\xff"+strings.Repeat("x", 100)) },
		kind: errs.BadAnswer},
	{name: "a gigabyte announced, a hundred bytes sent", act: func(nc net.Conn, v codec.Version) {
		io.WriteString(nc, "\x3f\xff\xff\xff"+strings.Repeat("x", 100))
	}, kind: errs.BadAnswer},
	{name: "a count of four billion", act: func(nc net.Conn, v codec.Version) {
		answer(nc, v, message.ResponseNodeInfo, raw("\xff\xff\xff\xfd\x00\x00\x00\x00\x00\x00\x00\x00"))
	}, kind: errs.BadAnswer},
	{name: "another message", act: func(nc net.Conn, v codec.Version) { answer(nc, v, 4711, message.Empty{}) }, kind: errs.BadAnswer},
	{name: "sends to another cluster", act: func(nc net.Conn, v codec.Version) { answer(nc, v, message.ResponseReroute, raw("\x01somewhere")) },
		kind: errs.Unsupported, clear: true},
	{name: "success without an answer", act: func(nc net.Conn, v codec.Version) { rc(nc, v, 0) }, kind: errs.BadAnswer},
	{name: "another version", act: func(nc net.Conn, v codec.Version) { answer(nc, v-1, message.ResponseNodeInfo, &message.NodeInfo{}) },
		kind: errs.BadAnswer},
	{name: "always HTTP", act: func(nc net.Conn, v codec.Version) { io.WriteString(nc, "HTTP/1.1 400 Bad Request\r\n\r\n") },
		kind: errs.Unsupported, again: true, clear: true},
	{name: "sends nothing", act: func(nc net.Conn, v codec.Version) { io.Copy(io.Discard, nc) }, kind: errs.Timeout},
	{name: "stops within its answer", act: func(nc net.Conn, v codec.Version) {
		io.WriteString(nc, "\x00\x00\x10\x00\x2a")
		io.Copy(io.Discard, nc)
	}, kind: errs.Timeout},
	{name: "refuses with an unknown number", act: func(nc net.Conn, v codec.Version) { rc(nc, v, 4711) }, kind: errs.BadAnswer, clear: true},
}

// patience returns the time limit for a request that should fail with the given
// kind of error. It is short only for a peer that does not answer. For all
// others it is long, so that a busy machine does not affect the test.
func patience(kind errs.Kind) time.Duration {
	if kind == errs.Timeout {
		return time.Second
	}
	return 30 * time.Second
}

// raw is a message body that consists of the given bytes.
type raw string

func (r raw) Walk(c *codec.Codec) {
	for _, b := range []byte(r) {
		c.Uint8("", &b)
	}
}

func TestBadPeers(t *testing.T) {
	t.Parallel()
	forEachTransport(t, func(t *testing.T, over transport) { testBadPeers(t, over) })
}

func testBadPeers(t *testing.T, over transport) {
	for _, tt := range bad {
		t.Run(tt.name, func(t *testing.T) {
			p := scriptOver(t, over, "ctl", func(nc net.Conn, f message.Frame) {
				if f.Header.Type == message.RequestPing {
					rc(nc, f.Header.Version, 0)
					return
				}
				tt.act(nc, f.Header.Version)
			})
			c := client.New(client.Config{Controllers: []client.Address{p.Address}, Timeout: patience(tt.kind), TLS: over.client})
			_, err := c.Nodes(context.Background(), ann, model.Query{}, func(*model.Node) error { return nil })
			if errs.KindOf(err) != tt.kind {
				t.Errorf("nodes: %v %v, want %v", errs.KindOf(err), err, tt.kind)
			}
			asked, want := p.count(message.RequestNodeInfo), 1
			if tt.again {
				want = 2
			}
			if asked != want {
				t.Errorf("asked %d times, want %d", asked, want)
			}
			if err := c.Verify(context.Background(), ann); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

// TestOutcomeUnknown checks controllers that misbehave after they have received
// a submission. The submission must never be repeated. The error must say that
// the outcome is unknown, unless the answer shows that the controller did
// nothing.
func TestOutcomeUnknown(t *testing.T) {
	t.Parallel()
	forEachTransport(t, func(t *testing.T, over transport) { testOutcomeUnknown(t, over) })
}

func testOutcomeUnknown(t *testing.T, over transport) {
	for _, tt := range bad {
		t.Run(tt.name, func(t *testing.T) {
			act := func(nc net.Conn, f message.Frame) {
				if f.Header.Type == message.RequestPing {
					rc(nc, f.Header.Version, 0)
					return
				}
				tt.act(nc, f.Header.Version)
			}
			primary, backup := scriptOver(t, over, "ctl", act), scriptOver(t, over, "bak", act)
			c := client.New(client.Config{Controllers: []client.Address{primary.Address, backup.Address}, Timeout: patience(tt.kind), TLS: over.client})
			_, err := c.Submit(context.Background(), ann, &model.JobDesc{Script: "x"})
			if tt.clear {
				if err == nil || code(err) == "outcome_unknown" {
					t.Errorf("got %v", err)
				}
				return
			}
			if code(err) != "outcome_unknown" || errs.KindOf(err) != errs.BadAnswer || errs.HintOf(err) == "" {
				t.Errorf("got %#v", err)
			}
			if n := primary.count(message.RequestSubmitBatchJob) + backup.count(message.RequestSubmitBatchJob); n != 1 {
				t.Errorf("sent %d times", n)
			}
			if strings.Contains(err.Error(), secret) {
				t.Error("the token is in the error")
			}
		})
	}
}

// count returns how many requests of type t have arrived since p.requests was
// last called.
func (p *peer) count(t message.Type) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.seen {
		if h.Type == t {
			n++
		}
	}
	return n
}

// TestCancel checks that a waiting call ends when its context ends, long before
// the client's own time limit.
func TestCancel(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{}, 1)
	p := script(t, "ctl", func(nc net.Conn, r message.Header) {
		arrived <- struct{}{}
		io.Copy(io.Discard, nc)
	})
	c := client.New(client.Config{Controllers: []client.Address{p.Address}, Timeout: time.Hour})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-arrived; cancel() }()
	if err := c.Verify(ctx, ann); err == nil {
		t.Error("no error")
	}
}

// TestRefusedBeforeTheRequestIsSent checks a daemon that refuses the credential
// and closes the connection before it has read all of a long request. The
// client must use the daemon's answer.
func TestRefusedBeforeTheRequestIsSent(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			front := make([]byte, 20)
			io.ReadFull(nc, front)
			number := uint32(fault.Authentication)
			if binary.BigEndian.Uint16(front[8:]) == uint16(message.RequestPing) {
				number = 0
			}
			rc(nc, codec.Newest, number)
			nc.(*net.TCPConn).CloseWrite()
			time.AfterFunc(50*time.Millisecond, func() { nc.Close() })
		}
	}()
	c := client.New(client.Config{Controllers: []client.Address{{Name: "ctl", Network: "tcp", Address: ln.Addr().String()}}})
	_, err = c.Submit(context.Background(), ann, &model.JobDesc{Script: strings.Repeat("x", 16<<20)})
	if errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("got %v", err)
	}
}

// TestAccountingVersionProbe checks that the client determines the version of
// an accounting daemon. Such a daemon refuses other versions with an error
// number.
func TestAccountingVersionProbe(t *testing.T) {
	t.Parallel()
	var versions []codec.Version
	p := opener(t, func(nc net.Conn, v codec.Version) {
		versions = append(versions, v)
		reply := &message.PersistRC{Info: uint16(v) << 8}
		if v > codec.V2411 {
			reply.Code = fault.ProtocolVersion
		}
		b, _ := message.EncodePersistent(v, message.AccountingRC, reply)
		nc.Write(b)
	})
	c := client.NewAccounting(client.Config{Accounting: []client.Address{p}})
	for range 2 {
		if err := c.Verify(context.Background(), ann); err != nil {
			t.Fatal(err)
		}
	}
	if want := append(down(codec.V2411), codec.V2411); !cmp.Equal(want, versions) {
		t.Errorf("asked in %v, want %v", versions, want)
	}
}

func TestBadAccountingDaemons(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		act  func(nc net.Conn, v codec.Version)
		kind errs.Kind
	}{
		{name: "closes", act: func(net.Conn, codec.Version) {}, kind: errs.BadAnswer},
		{name: "half an answer", act: func(nc net.Conn, _ codec.Version) { io.WriteString(nc, "\x00\x00\x00\x20\x05\x99") }, kind: errs.BadAnswer},
		{name: "one byte", act: func(nc net.Conn, _ codec.Version) { io.WriteString(nc, "\x00\x00\x00\x01\x05") }, kind: errs.BadAnswer},
		{name: "another message", act: func(nc net.Conn, _ codec.Version) { io.WriteString(nc, "\x00\x00\x00\x02\x12\x34") }, kind: errs.BadAnswer},
		{name: "sends nothing", act: func(nc net.Conn, _ codec.Version) { io.Copy(io.Discard, nc) }, kind: errs.Timeout},
		{name: "refuses", act: func(nc net.Conn, v codec.Version) {
			b, _ := message.EncodePersistent(v, message.AccountingRC, &message.PersistRC{Code: fault.Authentication})
			nc.Write(b)
		}, kind: errs.Unauthenticated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := client.NewAccounting(client.Config{Accounting: []client.Address{opener(t, tt.act)}, Timeout: patience(tt.kind)})
			if _, _, err := c.Stats(context.Background(), ann); errs.KindOf(err) != tt.kind {
				t.Errorf("got %v %v, want %v", errs.KindOf(err), err, tt.kind)
			}
		})
	}
}

// opener starts a peer that lets clients open persistent connections.
func opener(t *testing.T, act func(nc net.Conn, v codec.Version)) client.Address {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			nc.SetDeadline(time.Now().Add(30 * time.Second))
			if b, err := wire.Read(nc, 1<<20); err == nil && binary.BigEndian.Uint16(b) == uint16(message.RequestPersistInit) {
				f, _ := message.ParseFrame(b[2:])
				act(nc, f.Header.Version)
			}
			nc.Close()
		}
	})
	t.Cleanup(func() { ln.Close(); wait.Wait() })
	return client.Address{Name: "dbd", Network: "tcp", Address: ln.Addr().String()}
}
