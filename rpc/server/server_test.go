package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/become/nss"
	"schedrestd/internal/errs"
	"schedrestd/internal/fdpass/unixconn"
	"schedrestd/internal/limit"
	"schedrestd/internal/socket"
	"schedrestd/internal/socket/listener"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/tlsconn"
	"schedrestd/rpc/wire"
	"schedrestd/security"
)

// Credentials of the tests.
var (
	kernel = message.Credential{Plugin: message.PluginNone}
	token  = message.Credential{Plugin: message.PluginJWT, Token: "ann's token"}
)

const secret = "ann's token"

// verify accepts only the token of ann. In these tests ann is a Super, and may
// act for bob.
func verify(tok, actAs string) (Identity, error) {
	a := Authority{
		Token: func(t string) (string, time.Time, error) {
			if t != secret {
				return "", time.Time{}, errors.New("forged")
			}
			return "ann", time.Time{}, nil
		},
		Lookup: func(name string) (uint32, uint32, error) {
			switch name {
			case "ann":
				return 100, 101, nil
			case "bob":
				return 200, 201, nil
			}
			return 0, 0, errs.New(errs.NotFound, "no user %q", name)
		},
		Super: func(uid uint32) bool { return uid == 100 },
	}
	return a.Verify(tok, actAs)
}

// A fixture is a server that listens on TCP and on a UNIX socket.
type fixture struct {
	*Server
	tcp, unix string
	log       *buffer
	client    *tlsconn.Client // nil without TLS
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

func start(t testing.TB, s *Server) *fixture {
	t.Helper()
	f := &fixture{Server: s, log: &buffer{}}
	s.Log = slog.New(slog.NewTextHandler(f.log, nil))
	if s.Verify == nil {
		s.Verify = verify
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.tcp, f.unix = tcp.Addr().String(), filepath.Join(sockettest.Dir(t), "s")
	unix, err := listener.Listen(f.unix, socket.Options{Mode: 0o666, PrivateGroup: nss.PrivateGroup})
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for _, ln := range []net.Listener{tcp, unix} {
		wait.Go(func() {
			if err := s.Serve(ln); !errors.Is(err, errClosed) {
				t.Errorf("Serve: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		wait.Wait()
	})
	return f
}

func (f *fixture) dial(t testing.TB, network string) net.Conn {
	t.Helper()
	address := f.tcp
	if network == "unix" {
		address = f.unix
	}
	nc, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	nc.SetDeadline(time.Now().Add(2 * time.Minute))
	t.Cleanup(func() { nc.Close() })
	if network == "unix" || f.client == nil {
		return nc
	}
	secure, err := f.client.Connect(t.Context(), nc, []string{"ctl.example"})
	if err != nil {
		t.Fatal(err)
	}
	return secure
}

// ask sends raw bytes and reads one answer.
func (f *fixture) ask(t testing.TB, network string, b []byte) (message.Frame, error) {
	t.Helper()
	nc := f.dial(t, network)
	if _, err := nc.Write(b); err != nil {
		t.Fatal(err)
	}
	answer, err := wire.Read(nc, 1<<20)
	if err != nil {
		return message.Frame{}, err
	}
	return message.ParseFrame(answer)
}

func encode(t testing.TB, v codec.Version, typ message.Type, cred *message.Credential, body message.Body) []byte {
	t.Helper()
	b, err := message.Encode(v, 0, typ, cred, body)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func code(t testing.TB, f message.Frame) uint32 {
	t.Helper()
	var rc message.RC
	if f.Header.Type != message.ResponseRC {
		t.Fatalf("message %d instead of a return code", f.Header.Type)
	}
	if err := f.Decode(&rc); err != nil {
		t.Fatal(err)
	}
	return rc.Code
}

// whoami answers with the identity of the request's user.
func whoami(_ context.Context, r *Request) (message.Type, message.Body, error) {
	return message.ResponseAuthToken, &message.TokenResponse{Token: fmt.Sprintf("%d/%d %s by %s kernel=%t",
		r.Identity.UID, r.Identity.GID, r.Identity.Name, r.Identity.TokenUser, r.Identity.FromKernel)}, nil
}

func TestAuthentication(t *testing.T) {
	f := start(t, &Server{Handlers: map[message.Type]Handler{message.RequestPing: whoami}})
	self := fmt.Sprintf("%d/%d  by  kernel=true", os.Getuid(), os.Getgid())
	jwt := func(token, actAs string) *message.Credential {
		return &message.Credential{Plugin: message.PluginJWT, Token: token, ActAs: actAs}
	}
	tests := []struct {
		name    string
		network string
		cred    *message.Credential
		want    string // "" if the request is refused
	}{
		{name: "auth/cred on a UNIX socket", network: "unix", cred: &kernel, want: self},
		{name: "auth/cred on TCP", network: "tcp", cred: &kernel},
		{name: "token on TCP", network: "tcp", cred: &token, want: "100/101 ann by  kernel=false"},
		{name: "token on a UNIX socket is the token's user", network: "unix", cred: &token, want: "100/101 ann by  kernel=false"},
		{name: "acting for another", network: "tcp", cred: jwt(secret, "bob"), want: "200/201 bob by ann kernel=false"},
		{name: "acting for oneself", network: "tcp", cred: jwt(secret, "ann"), want: "100/101 ann by  kernel=false"},
		{name: "acting for no user", network: "tcp", cred: jwt(secret, "nobody-known")},
		{name: "forged token", network: "tcp", cred: jwt("forged", "")},
		{name: "forged token does not fall back on the socket", network: "unix", cred: jwt("forged", "")},
		{name: "empty token", network: "unix", cred: jwt("", "")},
		{name: "empty token with a name", network: "unix", cred: jwt("", "root")},
		{name: "no credential, flag set", network: "unix", cred: nil},
		{name: "munge", network: "unix", cred: &message.Credential{Plugin: message.PluginMunge, Text: "MUNGE:x:"}},
		{name: "auth/slurm", network: "tcp", cred: &message.Credential{Plugin: message.PluginSlurm, Text: "x"}},
		{name: "unknown plugin", network: "unix", cred: &message.Credential{Plugin: 12345}},
	}
	for _, tt := range tests {
		for _, v := range []codec.Version{codec.V2205, codec.V2411, codec.Newest} {
			t.Run(fmt.Sprintf("%s/%d", tt.name, v), func(t *testing.T) {
				answer, err := f.ask(t, tt.network, encode(t, v, message.RequestPing, tt.cred, message.Empty{}))
				if err != nil {
					t.Fatal(err)
				}
				if answer.Header.Version != v {
					t.Errorf("answered in protocol %d", answer.Header.Version)
				}
				if tt.want == "" {
					if got := code(t, answer); got != fault.Authentication {
						t.Errorf("number %d", got)
					}
					return
				}
				var resp message.TokenResponse
				if err := answer.Decode(&resp); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, resp.Token); diff != "" {
					t.Errorf("identity (-want +got):\n%s", diff)
				}
			})
		}
	}
	if !strings.Contains(f.log.String(), "credential refused") {
		t.Error("refusals are not logged")
	}
	if strings.Contains(f.log.String(), secret) || strings.Contains(f.log.String(), "MUNGE:x") {
		t.Error("a credential is in the log")
	}
}

func TestAuthorityOfAnOrdinaryUser(t *testing.T) {
	a := Authority{
		Token:  func(string) (string, time.Time, error) { return "bob", time.Time{}, nil },
		Lookup: func(name string) (uint32, uint32, error) { return 200, 200, nil },
		Super:  func(uid uint32) bool { return uid == 0 },
	}
	if id, err := a.Verify("x", "root"); err == nil {
		t.Errorf("bob acts for root: %+v", id)
	}
	if _, err := a.Verify("x", "bob"); err != nil {
		t.Errorf("bob may not act as bob: %v", err)
	}
}

func TestAnswerCredential(t *testing.T) {
	f := start(t, &Server{Handlers: map[message.Type]Handler{message.RequestPing: whoami}})
	for v := codec.Oldest; v <= codec.Newest; v++ {
		answer, err := f.ask(t, "tcp", encode(t, v, message.RequestPing, &token, message.Empty{}))
		if err != nil {
			t.Fatal(err)
		}
		flag, want := answer.Header.Flags&message.FlagNoCredential != 0, message.Credential{}
		if v < codec.V2302 {
			want.Plugin = message.PluginJWT
		}
		if flag != (v >= codec.V2302) {
			t.Errorf("protocol %d: flags %#x", v, answer.Header.Flags)
		}
		if diff := cmp.Diff(want, answer.Credential); diff != "" {
			t.Errorf("protocol %d (-want +got):\n%s", v, diff)
		}
	}
}

func TestVersionRefusal(t *testing.T) {
	f := start(t, &Server{Handlers: map[message.Type]Handler{message.RequestPing: whoami}, Oldest: codec.V2302, Newest: codec.V2411})
	for _, v := range []byte{0x20, 37, 38, 43, byte(codec.Newest), byte(codec.Newest) + 1, 0xff} {
		b := encode(t, codec.V2411, message.RequestPing, &token, message.Empty{})
		b[4] = v
		answer, err := f.ask(t, "tcp", b)
		if err != nil {
			t.Fatalf("version %d: %v", v, err)
		}
		if answer.Header.Version != codec.V2411 || code(t, answer) != fault.Authentication {
			t.Errorf("version %d: answered in %d with %d", v, answer.Header.Version, code(t, answer))
		}
	}
}

func TestErrorsTravelAsNumbers(t *testing.T) {
	notFound := errs.New(errs.NotFound, "no job 7")
	notFound.Number = fault.InvalidJobID
	f := start(t, &Server{Handlers: map[message.Type]Handler{
		message.RequestJobInfoSingle:  func(context.Context, *Request) (message.Type, message.Body, error) { return 0, nil, notFound },
		message.RequestSubmitBatchJob: func(context.Context, *Request) (message.Type, message.Body, error) { return 0, nil, notFound },
		message.RequestKillJob: func(context.Context, *Request) (message.Type, message.Body, error) {
			return 0, nil, errors.New("open journal: disk full")
		},
		message.RequestAuthToken: func(_ context.Context, r *Request) (message.Type, message.Body, error) {
			return 0, nil, r.Decode(&message.TokenRequest{})
		},
	}})
	tests := []struct {
		name string
		typ  message.Type
		want message.RCMessage
	}{
		{name: "a number", typ: message.RequestJobInfoSingle, want: message.RCMessage{Code: fault.InvalidJobID}},
		{name: "a submission gets a text", typ: message.RequestSubmitBatchJob, want: message.RCMessage{Code: fault.InvalidJobID, Message: "no job 7"}},
		{name: "an internal error has no text", typ: message.RequestKillJob, want: message.RCMessage{Code: fault.Internal}},
		{name: "a body that does not decode", typ: message.RequestAuthToken, want: message.RCMessage{Code: 22}},
		{name: "an unknown message", typ: 9999, want: message.RCMessage{Code: fault.UnexpectedMessage}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer, err := f.ask(t, "tcp", encode(t, codec.V2411, tt.typ, &token, message.Empty{}))
			if err != nil {
				t.Fatal(err)
			}
			got := message.RCMessage{}
			if answer.Header.Type == message.ResponseRCMessage {
				err = answer.Decode(&got)
			} else {
				got.Code = code(t, answer)
			}
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestBadPeers(t *testing.T) {
	f := start(t, &Server{Handlers: map[message.Type]Handler{message.RequestPing: whoami}, MaxRequest: 1 << 20,
		FrontTimeout: 100 * time.Millisecond, BodyTimeout: 100 * time.Millisecond})
	good := encode(t, codec.V2411, message.RequestPing, &token, message.Empty{})
	forged := encode(t, codec.V2411, message.RequestPing, &kernel, &message.RCMessage{Message: strings.Repeat("x", 100_000)})
	wrongBody := bytes.Clone(good)
	wrongBody[4+2+2+2+3]++ // body length in the header
	withTail := encode(t, codec.V2411, message.RequestPing, &token, &message.RCMessage{Message: strings.Repeat("x", 60_000)})
	long := encode(t, codec.V2411, message.RequestPing, &token, &message.RCMessage{Message: strings.Repeat("x", 100_000)})
	tests := []struct {
		name string
		send []byte
		want error
	}{
		{name: "ten bytes, then nothing", send: good[:10], want: io.EOF},
		{name: "half a length", send: good[:2], want: io.EOF},
		{name: "four gigabytes announced", send: []byte("\xff\xff\xff\xffabc"), want: io.EOF},
		{name: "over the limit", send: []byte("\x00\x20\x00\x00abc"), want: io.EOF},
		{name: "HTTP", send: []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), want: io.EOF},
		{name: "empty message", send: []byte{0, 0, 0, 0}, want: io.EOF},
		{name: "body length is wrong", send: wrongBody, want: io.EOF},
		{name: "stops within the body", send: withTail[:50_000], want: io.EOF},
		{name: "persistent connections are not supported", send: []byte("\x00\x00\x00\x04\x19\x64xx"), want: io.EOF},
		{name: "refused before the body arrives", send: forged[:40_000], want: nil},
		{name: "refused for the body's length", send: long[:40_000], want: nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			nc := f.dial(t, "tcp")
			if _, err := nc.Write(tt.send); err != nil {
				t.Fatal(err)
			}
			_, err := wire.Read(nc, 1<<20)
			if tt.want == nil && err != nil || tt.want != nil && err == nil {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
				t.Error("the server holds the connection")
			}
		})
	}
	if _, err := f.ask(t, "tcp", good); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestPanicCostsOneConnection(t *testing.T) {
	f := start(t, &Server{Handlers: map[message.Type]Handler{
		message.RequestPing:    whoami,
		message.RequestKillJob: func(context.Context, *Request) (message.Type, message.Body, error) { panic("boom") },
	}})
	if _, err := f.ask(t, "unix", encode(t, codec.V2411, message.RequestKillJob, &kernel, message.Empty{})); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	if _, err := f.ask(t, "unix", encode(t, codec.V2411, message.RequestPing, &kernel, message.Empty{})); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if !strings.Contains(f.log.String(), "boom") {
		t.Error("not logged")
	}
}

// TestUnknownOutcomeIsNotAnswered checks that a client gets no answer to a
// request if the handler does not know whether the request was carried out.
func TestUnknownOutcomeIsNotAnswered(t *testing.T) {
	f := start(t, &Server{Handlers: map[message.Type]Handler{
		message.RequestKillJob: func(context.Context, *Request) (message.Type, message.Body, error) {
			return 0, nil, &errs.Error{Kind: errs.Unavailable, Code: errs.OutcomeUnknown, Message: "disk failed"}
		},
	}})
	if _, err := f.ask(t, "unix", encode(t, codec.V2411, message.RequestKillJob, &kernel, message.Empty{})); !errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(f.log.String(), "disk failed") {
		t.Error("not logged")
	}
}

// TestSlotsAreOfAListener checks that the UNIX socket still answers when
// unknown clients occupy all connection slots of the TCP listener. When these
// clients have timed out, TCP must answer again.
func TestSlotsAreOfAListener(t *testing.T) {
	f := start(t, &Server{Handlers: map[message.Type]Handler{message.RequestPing: whoami}, Conns: limit.DaemonConns.Of(2), FrontTimeout: 200 * time.Millisecond})
	for range 4 {
		f.dial(t, "tcp")
	}
	for _, network := range []string{"unix", "tcp"} {
		if _, err := f.ask(t, network, encode(t, codec.V2411, message.RequestPing, &token, message.Empty{})); err != nil {
			t.Errorf("%s: %v", network, err)
		}
	}
}

// TestNoDescriptors checks that a descriptor that a client sends to a UNIX
// socket is refused, or at least does not block a thread of the server.
func TestNoDescriptors(t *testing.T) {
	f := start(t, &Server{})
	c := f.dial(t, "unix")
	defer c.Close()
	if _, _, err := c.(*net.UnixConn).WriteMsgUnix([]byte{0}, syscall.UnixRights(0), nil); security.KernelSince(6, 16) && !errors.Is(err, syscall.EPERM) {
		t.Errorf("the sender receives %v", err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		f.mu.Lock()
		for c := range f.conns {
			if _, ok := c.nc.(*unixconn.Conn); !ok {
				t.Errorf("it reads by a %T", c.nc)
			}
		}
		n := len(f.conns)
		f.mu.Unlock()
		if n > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody accepts")
		}
	}
}

func TestShutdownWaitsForAnswers(t *testing.T) {
	arrived, proceed := make(chan struct{}), make(chan struct{})
	s := &Server{Handlers: map[message.Type]Handler{
		message.RequestPing: func(ctx context.Context, r *Request) (message.Type, message.Body, error) {
			close(arrived)
			<-proceed
			return whoami(ctx, r)
		},
	}}
	f := start(t, s)
	idle := f.dial(t, "unix")
	busy := f.dial(t, "unix")
	busy.Write(encode(t, codec.V2411, message.RequestPing, &kernel, message.Empty{}))
	<-arrived
	done := make(chan error)
	go func() { done <- s.Shutdown(context.Background()) }()
	if _, err := idle.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("idle connection: %v", err)
	}
	close(proceed)
	if _, err := wire.Read(busy, 1<<20); err != nil {
		t.Errorf("the request in flight: %v", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("unix", f.unix); err == nil {
		t.Error("still listens")
	}
}

// TestLargeRequests checks the limits on the memory for a request. The limits
// depend on the type and the sender of the request, and apply before the server
// reads the body.
func TestLargeRequests(t *testing.T) {
	f := start(t, &Server{
		Handlers:   map[message.Type]Handler{message.RequestPing: whoami, message.RequestSubmitBatchJob: whoami},
		Persistent: map[message.Type]Handler{message.AccountingRecordJobs: whoami},
		Limit: func(m message.Type, _ Identity) int {
			if m == message.RequestSubmitBatchJob {
				return 1 << 20
			}
			return MaxSmall
		},
		Bytes: limit.DaemonRequestBytes.WithShare(500_000),
	})
	for _, tt := range []struct {
		name string
		kind message.Type
		size int
		want uint32
	}{
		{"a question", message.RequestPing, 60_000, 0},
		{"a long question", message.RequestPing, 70_000, fault.TooLarge},
		{"a job", message.RequestSubmitBatchJob, 400_000, 0},
		{"a job, over the user's limit", message.RequestSubmitBatchJob, 600_000, fault.Backoff},
		{"a job that is too long", message.RequestSubmitBatchJob, 1_100_000, fault.TooLarge},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nc := f.dial(t, "tcp")
			b := encode(t, codec.V2411, tt.kind, &token, &message.RCMessage{Message: strings.Repeat("x", tt.size)})
			go nc.Write(b)
			answer, err := wire.Read(nc, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			frame, err := message.ParseFrame(answer)
			if err != nil {
				t.Fatal(err)
			}
			var got uint32
			switch frame.Header.Type {
			case message.ResponseRC:
				got = code(t, frame)
			case message.ResponseRCMessage:
				var rc message.RCMessage
				if err := frame.Decode(&rc); err != nil {
					t.Fatal(err)
				}
				got = rc.Code
			}
			if tt.want == 0 && (got == fault.TooLarge || got == fault.Backoff) || tt.want != 0 && got != tt.want {
				t.Errorf("answer %d, want %d", got, tt.want)
			}
		})
	}
	t.Run("on a persistent connection", func(t *testing.T) {
		nc := f.dial(t, "tcp")
		if _, err := persistent(t, nc, codec.V2411, opening(t, codec.V2411, token, codec.V2411)); err != nil {
			t.Fatal(err)
		}
		b, err := message.EncodePersistent(codec.V2411, message.AccountingRecordJobs, &message.RCMessage{Message: strings.Repeat("x", 100_000)})
		if err != nil {
			t.Fatal(err)
		}
		const tooLarge = "the request has 100009 bytes; at most 65536 are accepted"
		if rc, err := persistent(t, nc, codec.V2411, b); err != nil || rc.Code != fault.TooLarge || rc.Comment != tooLarge {
			t.Errorf("%+v, %v", rc, err)
		}
	})
}
