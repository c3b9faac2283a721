package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"schedrestd/internal/fdpass/unixconn"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// eventually waits until holds() returns true.
func eventually(t testing.TB, msg string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(msg)
		}
	}
}

// activeConns returns the number of connections of f that may continue: those
// that were not asked to end.
func (f *fixture) activeConns() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for c := range f.conns {
		if !c.isEvicted {
			n++
		}
	}
	return n
}

// closed reports whether the server closed nc.
func closed(nc net.Conn) bool {
	nc.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := nc.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// TestSilentConnectionsGiveWay checks that clients that connect and send
// nothing can't block other clients, however many connections they open.
// FrontTimeout never expires in this test.
func TestSilentConnectionsGiveWay(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			f := start(t, &Server{Handlers: map[message.Type]Handler{message.RequestPing: whoami}, Conns: limit.DaemonConns.Of(8),
				Super: func(uint32) bool { return false }, FrontTimeout: time.Hour})
			var silent []net.Conn
			for range 24 {
				silent = append(silent, f.dial(t, network))
			}
			if _, err := f.ask(t, network, encode(t, codec.V2411, message.RequestPing, &token, message.Empty{})); err != nil {
				t.Fatal(err)
			}
			if n := f.activeConns(); n > 8 {
				t.Errorf("%d connections of 8", n)
			}
			eventually(t, "silent connections stay", func() bool { return closed(silent[0]) && closed(silent[8]) && closed(silent[15]) })
		})
	}
}

// TestAnsweredConnectionsStay checks that a connection whose request is being
// answered is never closed to make room. A new client on TCP must wait in the
// meantime.
func TestAnsweredConnectionsStay(t *testing.T) {
	arrived, proceed := make(chan struct{}, 8), make(chan struct{})
	f := start(t, &Server{Conns: limit.DaemonConns.Of(2), FrontTimeout: time.Hour, Super: func(uint32) bool { return false },
		Handlers: map[message.Type]Handler{message.RequestPing: func(ctx context.Context, r *Request) (message.Type, message.Body, error) {
			arrived <- struct{}{}
			<-proceed
			return whoami(ctx, r)
		}}})
	ping := encode(t, codec.V2411, message.RequestPing, &token, message.Empty{})
	var busy []net.Conn
	for range 2 {
		nc := f.dial(t, "tcp")
		nc.Write(ping)
		<-arrived
		busy = append(busy, nc)
	}
	late := f.dial(t, "tcp")
	late.Write(ping)
	close(proceed)
	for i, nc := range append(busy, late) {
		if _, err := wire.Read(nc, 1<<20); err != nil {
			t.Errorf("connection %d: %v", i, err)
		}
	}
}

// openSession opens a persistent connection.
func (f *fixture) openSession(t *testing.T, cred message.Credential) (net.Conn, message.PersistRC) {
	t.Helper()
	nc := f.dial(t, "tcp")
	rc, err := persistent(t, nc, codec.V2411, opening(t, codec.V2411, cred, codec.V2411))
	if err != nil {
		t.Fatal(err)
	}
	return nc, rc
}

// asUser accepts any token. It serves as a Verify function. The number in the
// token becomes the uid of the user.
func asUser(token, _ string) (Identity, error) {
	id := Identity{Name: token, GID: 100}
	for _, digit := range strings.TrimPrefix(token, "uid ") {
		id.UID = 10*id.UID + uint32(digit-'0')
	}
	return id, nil
}

func jwt(token string) message.Credential {
	return message.Credential{Plugin: message.PluginJWT, Token: token}
}

// TestSessionsOfOneUser checks that a user's oldest idle session is closed if
// another session of that user would exceed the limit for one user or the size
// of the pool.
func TestSessionsOfOneUser(t *testing.T) {
	for name, limits := range map[string]struct{ conns, perUser, closed int }{"share": {100, 4, 8}, "all": {7, 100, 6}} {
		t.Run(name, func(t *testing.T) {
			f := start(t, &Server{Conns: limit.DaemonConns.Of(limits.conns).WithShare(limits.perUser), Super: func(uint32) bool { return false }, Verify: asUser,
				Persistent: map[message.Type]Handler{message.AccountingGetStats: func(context.Context, *Request) (message.Type, message.Body, error) {
					return message.AccountingRC, &message.PersistRC{}, nil
				}}})
			other, _ := f.openSession(t, jwt("uid 7"))
			var sessions []net.Conn
			for range 12 {
				nc, rc := f.openSession(t, jwt("uid 1000"))
				if rc.Code != 0 {
					t.Fatalf("refused: %+v", rc)
				}
				sessions = append(sessions, nc)
			}
			// Which of two sessions became idle first depends on the scheduler.
			eventually(t, "the oldest sessions stay", func() bool {
				n := 0
				for _, nc := range sessions {
					if closed(nc) {
						n++
					}
				}
				return n == limits.closed && closed(sessions[0])
			})
			b, err := message.EncodePersistent(codec.V2411, message.AccountingGetStats, message.Empty{})
			if err != nil {
				t.Fatal(err)
			}
			for _, nc := range []net.Conn{other, sessions[11]} {
				nc.SetDeadline(time.Now().Add(20 * time.Second))
				if _, err := persistent(t, nc, codec.V2411, b); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestAnsweredConnectionsOfOneUser checks that a user at the connection limit
// gets no more connections while all of theirs are busy. A Super must still get
// connections, even beyond the limit.
func TestAnsweredConnectionsOfOneUser(t *testing.T) {
	arrived, proceed := make(chan struct{}, 8), make(chan struct{})
	f := start(t, &Server{Conns: limit.DaemonConns.WithShare(3), Super: func(uid uint32) bool { return uid == 0 }, Verify: asUser,
		Handlers: map[message.Type]Handler{message.RequestPing: func(ctx context.Context, r *Request) (message.Type, message.Body, error) {
			arrived <- struct{}{}
			<-proceed
			return whoami(ctx, r)
		}}})
	ping := func(user string) []byte {
		cred := jwt(user)
		return encode(t, codec.V2411, message.RequestPing, &cred, message.Empty{})
	}
	var busy []net.Conn
	for range 3 {
		nc := f.dial(t, "tcp")
		nc.Write(ping("uid 1000"))
		<-arrived
		busy = append(busy, nc)
	}
	answer, err := f.ask(t, "tcp", ping("uid 1000"))
	if err != nil || code(t, answer) != fault.Backoff {
		t.Errorf("%v, %v", answer, err)
	}
	for range 5 {
		nc := f.dial(t, "tcp")
		nc.Write(ping("uid 0")) // connections of a Super don't count
		<-arrived
		busy = append(busy, nc)
	}
	close(proceed)
	for _, nc := range busy {
		if _, err := wire.Read(nc, 1<<20); err != nil {
			t.Error(err)
		}
	}
}

// TestSuperGetsIn checks that a Super gets more than the usual number of connections to
// the UNIX socket, even while all existing connections are busy.
func TestSuperGetsIn(t *testing.T) {
	self := uint32(os.Getuid())
	arrived, proceed := make(chan struct{}, 8), make(chan struct{})
	s := &Server{Conns: limit.DaemonConns.Of(2), FrontTimeout: time.Hour, Super: func(uid uint32) bool { return uid == self },
		Handlers: map[message.Type]Handler{message.RequestPing: func(ctx context.Context, r *Request) (message.Type, message.Body, error) {
			arrived <- struct{}{}
			<-proceed
			return whoami(ctx, r)
		}}}
	f := start(t, s)
	ping := encode(t, codec.V2411, message.RequestPing, &kernel, message.Empty{})
	var busy []net.Conn
	for range 4 {
		nc := f.dial(t, "unix")
		nc.Write(ping)
		<-arrived
		busy = append(busy, nc)
	}
	close(proceed)
	for _, nc := range busy {
		if _, err := wire.Read(nc, 1<<20); err != nil {
			t.Error(err)
		}
	}
}

// TestArrivals checks that a user who connects too often is refused, even under
// several uids, and that a Super is not.
func TestArrivals(t *testing.T) {
	for name, super := range map[string]bool{"a user": false, "a Super": true} {
		t.Run(name, func(t *testing.T) {
			const burst = 3
			owner := func(uid uint32) uint32 {
				if uid != uint32(os.Geteuid()) {
					t.Errorf("owner of uid %d", uid)
				}
				return 1000
			}
			s := &Server{Super: func(uint32) bool { return super }, Owner: owner, Handlers: map[message.Type]Handler{message.RequestPing: whoami},
				arrivals: rate.NewBuckets[uint32](rate.Row{Max: 1, Burst: burst, PerSecond: 1e-6})}
			f := start(t, s)
			ping := encode(t, codec.V2411, message.RequestPing, &kernel, message.Empty{})
			answered := func() bool {
				nc, err := unixconn.Dial(t.Context(), f.unix)
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				nc.Write(ping)
				_, err = wire.Read(nc, 1<<20)
				return err == nil
			}
			for i := range 3 * burst {
				if got, want := answered(), super || i < burst; got != want {
					t.Errorf("connection %d: answered %v, want %v", i, got, want)
				}
			}
			if left := s.arrivals.Take(time.Now(), 1000, 1); (left > 0) == super {
				t.Errorf("the owner's next connection has to wait %s", left)
			}
		})
	}
}

// TestEvicted checks which connections that wait for their clients are closed to
// make room. A script has the uids of the connections in the order in which they
// began to wait, with "!" if a request is being answered. Root is a Super.
func TestEvicted(t *testing.T) {
	for _, tt := range []struct{ name, conns, want string }{
		{"the one that was silent longest", "1 2 3", "0 1 2"},
		{"one of the source with the most connections", "1 2 2", "1 0 2"},
		{"not a busy one", "1! 1", "1"},
		{"busy ones count for their source", "1! 2 1", "2 1"},
		{"a Super's connections last", "0 0 2", "2 0 1"},
		{"a Super's, if the others are busy", "0 0 2!", "0 1"},
		{"all are busy", "1! 2!", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &Server{Super: func(uid uint32) bool { return uid == 0 }}
			words := strings.Fields(tt.conns)
			p := newPool(limit.DaemonConns.Of(len(words)))
			var list []*conn
			for _, word := range words {
				near, far := net.Pipe()
				t.Cleanup(func() { near.Close(); far.Close() })
				uid, busy := strings.CutSuffix(word, "!")
				c := &conn{server: s, nc: near, pool: p, source: user(uint32(uid[0] - '0'))}
				c.countLocked()
				if list = append(list, c); busy {
					c.beginRequest()
				}
			}
			var got []string
			evicted := map[*conn]bool{}
			for s.ensureCapacityLocked(&conn{server: s, pool: p, source: user(9)}) {
				for i, c := range list {
					if c.isEvicted && !evicted[c] {
						evicted[c] = true
						got = append(got, fmt.Sprint(i))
						c := &conn{server: s, nc: c.nc, pool: p, source: user(9)} // takes the place, and is busy at once
						c.countLocked()
						c.beginRequest()
					}
				}
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("closed in the order %q, want %q", got, tt.want)
			}
		})
	}
}

// TestOriginOfLocalClients checks that a TCP connection from this machine is
// attributed to the client's user, whichever loopback address the client uses.
func TestOriginOfLocalClients(t *testing.T) {
	f := start(t, &Server{FrontTimeout: time.Hour, Conns: limit.DaemonConns.Of(1)})
	for _, from := range []string{"127.0.0.1:0", "127.7.7.7:0"} {
		local, err := net.ResolveTCPAddr("tcp", from)
		if err != nil {
			t.Fatal(err)
		}
		nc, err := (&net.Dialer{LocalAddr: local}).Dial("tcp", f.tcp)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
	}
	want := fmt.Sprintf(`source="uid %d"`, os.Geteuid())
	eventually(t, "the log does not name the user", func() bool { return strings.Contains(f.log.String(), want) })
}

// TestManyAreBeingClosed checks that a listener admits no client while too many of its
// connections are being closed, which may take time and no longer counts, even if a
// place is free.
func TestManyAreBeingClosed(t *testing.T) {
	s := &Server{Super: func(uid uint32) bool { return uid == 0 }}
	p := newPool(limit.DaemonConns.Of(2))
	p.closing = maxClosing
	for _, uid := range []uint32{0, 1} {
		if s.ensureCapacityLocked(&conn{server: s, pool: p, source: user(uid)}) {
			t.Errorf("uid %d is admitted", uid)
		}
	}
	if p.closing--; !s.ensureCapacityLocked(&conn{server: s, pool: p, source: user(1)}) {
		t.Error("refused although a connection has been closed")
	}
}
