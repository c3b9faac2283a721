package admission

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"schedrestd/internal/penalty"
	"schedrestd/ipc/work"
)

// withPenalties returns a State with penalties, and with slots for all
// connections of a test.
func withPenalties() *State { return New(Config{Slots: 1000, Waiting: 10, Penalties: rules}) }

func connFrom(addr string) *Conn { return &Conn{Source: Address(netip.MustParseAddr(addr))} }

// TestBlockedBySource checks that all addresses of an IPv6 /64 are one source,
// and that an exempt source gets no penalty, and neither do the clients of this
// machine for one that has left before its user could be found.
func TestBlockedBySource(t *testing.T) {
	s := withPenalties()
	for i := range 40 {
		s.Offence(noon, connFrom(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(i)}).String()), penalty.Malformed, 0)
	}
	s.Decisions()
	s.Arrived(noon, connFrom("2001:db8::ffff"))
	list := s.Decisions()
	if len(list) != 1 || list[0].Action != Refuse || list[0].Reason != Blocked || list[0].Wait != time.Second {
		t.Errorf("a /64 with forty offences: %+v", list)
	}
	s.Arrived(noon.Add(time.Second), connFrom("2001:db8::ffff"))
	if list := s.Decisions(); list[0].Action != Admit {
		t.Errorf("after the block: %+v", list)
	}
	if s.BlockedFor(noon, connFrom("2001:db8:0:1::1")) != 0 {
		t.Error("another source is blocked")
	}
	exempt := connFrom("2001:db8:0:3::1")
	exempt.Exempt = true
	for range 40 {
		s.Offence(noon, exempt, penalty.Malformed, 0)
		if list := s.Decisions(); list != nil {
			t.Fatalf("an exempt source: %+v", list)
		}
	}
	left := connFrom("127.0.0.1")
	left.Left = true
	for range 400 {
		s.Offence(noon, left, penalty.Malformed, 0)
	}
	s.Arrived(noon, connFrom("127.0.0.1"))
	if list := s.Decisions(); len(list) != 1 || list[0].Action != Admit {
		t.Errorf("clients on loopback that left get others blocked: %+v", list)
	}
	if got := connFrom("2001:db8::1").Source.String(); got != "2001:db8::/64" {
		t.Errorf("the source is %s", got)
	}
}

// TestCrashCost checks that a crash counts once for each source with a request
// that was being answered. A connection must not count if it was at rest, if no
// complete header had arrived on it, or if the worker had not taken it.
func TestCrashCost(t *testing.T) {
	s := withPenalties()
	in := func(uid uint32, stage work.Stage) *Conn {
		c := &Conn{Source: User(uid)}
		s.Arrived(noon, c)
		if stage != 0 {
			s.Taken(c)
			s.Progress(c, stage)
		}
		return c
	}
	held := []*Conn{in(1, work.Answering), in(1, work.Answering), in(2, work.Idle), in(3, work.Waiting), in(4, 0)}
	for range 40 {
		held = append(held, in(5, work.Idle)) // a portal
	}
	held = append(held, in(5, work.Idle))
	for i, want := range []time.Duration{0, 0, 15 * time.Second} {
		s.Crash(noon, held)
		for _, c := range held {
			if c.Source != User(1) {
				if wait := s.BlockedFor(noon, c); wait != 0 {
					t.Errorf("crash %d: source %s is blocked for %s", i+1, c.Source, wait)
				}
			} else if wait := s.BlockedFor(noon, c); wait != want {
				t.Errorf("crash %d: the source of the request is blocked for %s, want %s", i+1, wait, want)
			}
		}
	}
}

// TestPauseReachesAll checks which connections are paused when a source is
// blocked: all connections of this source that workers have, and no others.
func TestPauseReachesAll(t *testing.T) {
	s := withPenalties()
	var list []*Conn
	for i, uid := range []uint32{7, 7, 8, 7, 8, 7} {
		c := &Conn{Source: User(uid), Ref: i}
		s.Arrived(noon, c)
		if i < 5 {
			s.Taken(c)
		}
		list = append(list, c)
	}
	s.Progress(list[1], work.Idle)
	var paused []int
	reports := 0
	for range 40 {
		s.Offence(noon, list[0], penalty.Malformed, 0)
		for _, d := range s.Decisions() {
			switch d.Action {
			case Pause:
				paused = append(paused, d.Conn.Ref.(int))
			case Report:
				reports++
				if d.Wait != time.Second || d.Offence != penalty.Malformed {
					t.Errorf("reported %+v", d)
				}
			}
		}
		if reports > 0 {
			break
		}
	}
	if slices.Sort(paused); !slices.Equal(paused, []int{0, 1, 3}) || reports != 1 {
		t.Errorf("connections %v are paused, %d reports", paused, reports)
	}
	s.Offence(noon, list[5], penalty.Malformed, 0)
	if list := s.Decisions(); len(list) != 1 || list[0].Action != Pause || list[0].Conn.Ref != 5 {
		t.Errorf("a connection that arrived after the block: %+v", list)
	}
}

// TestCredentials checks that a source that repeats a rejected credential
// commits only one offence. Each different rejected credential must be a
// further offence.
func TestCredentials(t *testing.T) {
	for _, tt := range []struct {
		name        string
		credentials func(i int) uint64
		blocked     bool
	}{
		{"one credential, again and again", func(int) uint64 { return 7 }, false},
		{"the credentials of twenty users, in turn", func(i int) uint64 { return uint64(i % 20) }, false},
		{"guesses", func(i int) uint64 { return uint64(i) }, true},
		{"guesses between known credentials", func(i int) uint64 { return uint64(i * (i % 2)) }, true},
	} {
		s, c := withPenalties(), &Conn{Source: User(7)}
		attempts := 0
		for attempts < 100 && s.BlockedFor(noon, c) == 0 {
			s.Offence(noon, c, penalty.Auth, tt.credentials(attempts))
			attempts++
		}
		if blocked := attempts < 100; blocked != tt.blocked {
			t.Errorf("%s: %d attempts before it is blocked", tt.name, attempts)
		}
	}
}
