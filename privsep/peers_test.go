package privsep

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/security"
)

// TestPeers checks that the parent forgets the user of a connection when the
// connection is closed, whatever the dispatcher does with its descriptor.
func TestPeers(t *testing.T) {
	alice, bob := security.Identity{UID: 31001, GID: 31101}, security.Identity{UID: 31002, GID: 31102}
	type conn struct {
		client, server int
		number         uint64
	}
	for _, tt := range []struct {
		name string
		act  func(c conn)
		want bool // alice is still connected
	}{
		{"open", func(conn) {}, true},
		{"the client has stopped sending", func(c conn) { must(t, unix.Shutdown(c.client, unix.SHUT_WR)) }, true},
		{"the client has disconnected, and the dispatcher keeps its descriptor", func(c conn) { unix.Close(c.client) }, false},
		{"all processes have closed the descriptor, and the client has not disconnected", func(c conn) { unix.Close(c.server) }, false},
		{"both", func(c conn) { unix.Close(c.client); unix.Close(c.server) }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPeers()
			connect := func(id security.Identity) (c conn) {
				fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
				must(t, err)
				c.client = fds[0]
				c.number, err = p.add(fds[1], id)
				must(t, err)
				c.server, err = unix.Dup(fds[1]) // the dispatcher's copy; the parent closes its own
				must(t, err)
				unix.Close(fds[1])
				return c
			}
			for range 300 { // more than one call of epoll_wait(2) reports
				unix.Close(connect(bob).client)
			}
			other, c := connect(bob), connect(alice)
			tt.act(c)
			p.forgetReleased()
			got, ok := p.find(c.number)
			if ok != tt.want || ok && got.UID != alice.UID {
				t.Errorf("found %v %v, want %v", got, ok, tt.want)
			}
			if _, ok := p.find(other.number); !ok {
				t.Error("another user's connection is gone")
			}
			if want := map[bool]int{true: 2, false: 1}[tt.want]; len(p.byID) != want {
				t.Errorf("%d connections are recorded, want %d", len(p.byID), want)
			}
		})
	}
}

// TestAbsentSince checks that the time of a user's absence begins again with
// each of the user's connections.
func TestAbsentSince(t *testing.T) {
	p, alice := newPeers(), security.Identity{UID: 31001, GID: 31101}
	connect := func() func() {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		_, err = p.add(fds[1], alice)
		must(t, err)
		return func() { unix.Close(fds[0]); unix.Close(fds[1]); p.forgetReleased() }
	}
	start := time.Unix(1_700_000_000, 0)
	at := func(seconds int) (time.Duration, bool) {
		since, absent := p.absentSince(idsOf(alice), start.Add(time.Duration(seconds)*time.Second))
		return since.Sub(start), absent
	}
	disconnect := connect()
	if _, absent := at(0); absent {
		t.Error("a connected user is absent")
	}
	disconnect()
	for _, s := range []int{10, 20} {
		if since, absent := at(s); !absent || since != 10*time.Second {
			t.Errorf("at %d s: %v since %s", s, absent, since)
		}
	}
	connect()() // between two checks
	if since, absent := at(30); !absent || since != 30*time.Second {
		t.Errorf("after a short connection: %v since %s", absent, since)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
