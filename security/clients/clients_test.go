package clients

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/security"
)

// TestClients checks that the parent forgets the user of a connection when the
// connection is closed, whatever the dispatcher does with its descriptor.
func TestClients(t *testing.T) {
	alice, bob := ids{31001, 31101}, ids{31002, 31102}
	type conn struct {
		client, server int
		number         uint64
	}
	for _, tt := range []struct {
		name string
		act  func(c conn)
		want bool // alice is still connected
		gone bool // Find alone finds out
	}{
		{"open", func(conn) {}, true, false},
		{"the client has stopped sending", func(c conn) { must(t, unix.Shutdown(c.client, unix.SHUT_WR)) }, true, false},
		{"the client has disconnected, and the dispatcher keeps its descriptor", func(c conn) { unix.Close(c.client) }, false, true},
		{"all processes have closed the descriptor, and the client has not disconnected", func(c conn) { unix.Close(c.server) }, false, false},
		{"both", func(c conn) { unix.Close(c.client); unix.Close(c.server) }, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newSet(t)
			connect := func(user ids) (c conn) {
				fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
				must(t, err)
				c.client = fds[0]
				c.number, err = p.Add(fds[1], identity(user))
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
			if _, ok := p.Find(c.number); ok && tt.gone {
				t.Error("found after its client has disconnected")
			}
			p.forgetReleased()
			got, ok := p.Find(c.number)
			if ok != tt.want || ok && (ids{got.UID, got.GID}) != alice {
				t.Errorf("found %v %v, want %v", got, ok, tt.want)
			}
			if _, ok := p.Find(other.number); !ok {
				t.Error("another user's connection is gone")
			}
			if want := map[bool]int{true: 2, false: 1}[tt.want]; len(p.byID) != want {
				t.Errorf("%d connections are recorded, want %d", len(p.byID), want)
			}
		})
	}
}

// TestAbsentUsers checks when a user counts as absent. The time begins again
// with each of the user's connections, however short.
func TestAbsentUsers(t *testing.T) {
	const absenceLimit = time.Minute
	p, alice := newSet(t), ids{31001, 31101}
	connect := func() (disconnect func()) {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		_, err = p.Add(fds[1], identity(alice))
		must(t, err)
		return func() { unix.Close(fds[0]); unix.Close(fds[1]) }
	}
	start := time.Now()
	check := func(what string, after time.Duration, want bool) {
		t.Helper()
		if present := p.Seen(start.Add(after), absenceLimit)(alice.uid, alice.gid); present != want {
			t.Errorf("%s: present %t, want %t", what, present, want)
		}
	}
	disconnect := connect()
	check("connected for long", 10*absenceLimit, true)
	disconnect()
	check("just disconnected", 11*absenceLimit-time.Second, true)
	check("disconnected long ago", 11*absenceLimit, false)
	connect()()
	check("a short connection between two checks", absenceLimit/2, true)
}

// TestVouched checks that a user for whom the keeper vouches is found only until
// its word expires.
func TestVouched(t *testing.T) {
	p := newSet(t)
	p.Vouch(1, identity(ids{31001, 31101}), time.Now().Add(time.Hour))
	p.Vouch(3, identity(ids{31002, 31102}), time.Now().Add(-time.Nanosecond))
	if got, ok := p.Find(1); !ok || got.UID != 31001 {
		t.Errorf("the user is not found: %v", got)
	}
	if got, ok := p.Find(3); ok {
		t.Errorf("uid %d is found after the end", got.UID)
	}
}

// TestMax checks that closed connections, which only the kernel reports, do
// not count towards the maximum.
func TestMax(t *testing.T) {
	p := newSet(t)
	p.Max = 10
	var open [][2]int
	defer func() {
		for _, fds := range open {
			unix.Close(fds[0])
			unix.Close(fds[1])
		}
	}()
	for n := range 4 * p.Max {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		_, err = p.Add(fds[1], identity(ids{31001, 31101}))
		must(t, err)
		unix.Close(fds[1])
		defer unix.Close(fds[0])
		if p.IsFull() {
			t.Fatalf("after %d closed connections", n)
		}
	}
	for n := range p.Max + 1 {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		must(t, err)
		open = append(open, [2]int(fds))
		_, err = p.Add(fds[1], identity(ids{31001, 31101}))
		must(t, err)
		if got := p.IsFull(); got != (n == p.Max) {
			t.Errorf("%d connections open: %t", n+1, got)
		}
	}
}

func newSet(t *testing.T) *Set {
	t.Helper()
	p, err := New(1000)
	must(t, err)
	t.Cleanup(func() { unix.Close(p.epoll) })
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type ids struct{ uid, gid uint32 }

func identity(i ids) security.Identity { return security.Identity{UID: i.uid, GID: i.gid} }
