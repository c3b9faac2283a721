package privsep

import (
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/penalty"
	"schedrestd/privsep/spawn"
	"schedrestd/rate"
)

// TestPenaltiesBySource: a /64 is one source however many addresses it has, a crash counts once for each source, and
// who is exempt owes nothing.
func TestPenaltiesBySource(t *testing.T) {
	p := newPenalties(ipc.Admission{Auth: time.Second, Crash: 15 * time.Second, Threshold: 30 * time.Second}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	of := func(addr string) *connection {
		return &connection{source: newOwners(Config{}, nil).sourceOf(netip.MustParseAddr(addr), ipc.NoID)}
	}
	for i := range 40 {
		p.offend(of(netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(i)}).String()), penalty.Auth)
	}
	if p.wait(of("2001:db8::ffff")) == 0 {
		t.Error("a /64 with forty offences need not wait")
	}
	if p.wait(of("2001:db8:0:1::1")) != 0 {
		t.Error("its neighbour has to wait")
	}
	for range 2 {
		p.crashed([]*connection{of("2001:db8:0:2::1"), of("2001:db8:0:2::2"), of("2001:db8:0:2::3")})
	}
	if p.wait(of("2001:db8:0:2::1")) != 0 {
		t.Error("two crashes were counted for each connection")
	}
	exempt := of("2001:db8:0:3::1")
	exempt.exempt = true
	for range 40 {
		p.offend(exempt, penalty.Auth)
	}
	if p.wait(exempt) != 0 {
		t.Error("who is exempt has to wait")
	}
	if got := of("2001:db8::1").source.String(); got != "2001:db8::/64" {
		t.Errorf("the source is %s", got)
	}
}

// TestLyingOffences: a worker's word counts for the connections that it holds, and not without end.
func TestLyingOffences(t *testing.T) {
	c := Config{Connections: 4, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	c.Setup.Admission = ipc.Admission{Auth: time.Second, Threshold: time.Second}
	s := newSlots(c)
	channel, fd, err := ipc.Pair(ipc.Parent, ipc.Worker)
	if err != nil {
		t.Fatal(err)
	}
	defer channel.Close()
	defer unix.Close(fd)
	p := &pool{means: means{slots: s}}
	mine, waiting := &connection{fd: -1, source: source{uid: 7, local: true}}, &connection{fd: 99, source: source{uid: 8, local: true}}
	w := &worker{Process: &spawn.Process{Channel: channel}, held: map[uint64]*connection{1: mine, 2: waiting}, offences: rate.New(offenceBurst, offenceRate, time.Now())}
	for _, id := range []uint64{2, 3} {
		if p.offence(w, &ipc.Offence{ID: id, What: ipc.WrongCredential}) == nil {
			t.Errorf("it may report connection %d, which it does not hold", id)
		}
	}
	var refused error
	for i := range 100 * offenceBurst {
		if refused = p.offence(w, &ipc.Offence{ID: 1, What: ipc.WrongCredential, Credential: uint64(i)}); refused != nil {
			break
		}
	}
	if refused == nil {
		t.Error("it may report without end")
	}
	if wait := s.penalties.wait(mine); wait <= 0 || wait > time.Second {
		t.Errorf("its client waits %s", wait)
	}
	if s.penalties.wait(waiting) != 0 {
		t.Error("somebody else waits")
	}
}

// TestPauseReachesAll: a pause is sent for all connections of the source, and for no others.
func TestPauseReachesAll(t *testing.T) {
	c := Config{Connections: 4, Log: slog.New(slog.DiscardHandler)}
	c.Setup.Admission = ipc.Admission{Malformed: time.Second, Threshold: time.Second}
	p := &pool{means: means{slots: newSlots(c)}, workers: map[uint32]*worker{}}
	offender, other := source{uid: 7, local: true}, source{uid: 8, local: true}
	var ends []*ipc.Channel
	for i, held := range []map[uint64]source{{1: offender, 2: offender, 3: other}, {4: offender, 5: other}} {
		channel, end := channelTo(t, ipc.Worker)
		ends = append(ends, end)
		w := &worker{Process: &spawn.Process{Channel: channel}, held: map[uint64]*connection{}, offences: rate.New(offenceBurst, offenceRate, time.Now())}
		for id, from := range held {
			w.held[id] = &connection{fd: -1, source: from}
		}
		p.workers[uint32(i)] = w
	}
	for range 2 {
		if err := p.offence(p.workers[0], &ipc.Offence{ID: 1, What: ipc.WrongRequest}); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range p.workers {
		w.Channel.Close()
	}
	var paused []uint64
	for _, end := range ends {
		for {
			m, err := end.Receive()
			if err != nil {
				break
			}
			paused = append(paused, m.Message.(*ipc.Pause).ID)
		}
	}
	slices.Sort(paused)
	if want := []uint64{1, 2, 4}; !slices.Equal(paused, want) {
		t.Errorf("the clients of connections %v have to wait, want %v", paused, want)
	}
}

// TestRepeatedCredential: a rejected credential costs its source once, whichever worker reports it, and every other one costs again.
func TestRepeatedCredential(t *testing.T) {
	for _, tt := range []struct {
		name        string
		credentials func(i int) uint64
		blocked     bool
	}{
		{"one, over and over", func(int) uint64 { return 7 }, false},
		{"those of twenty users, in turn", func(i int) uint64 { return uint64(i % 20) }, false},
		{"guesses", func(i int) uint64 { return uint64(i) }, true},
		{"guesses, each between two that are known", func(i int) uint64 { return uint64(i * (i % 2)) }, true},
	} {
		p := newPenalties(ipc.Admission{Auth: time.Second, Threshold: 30 * time.Second}, slog.New(slog.DiscardHandler))
		c := &connection{source: source{uid: 7, local: true}}
		attempts := 0
		for wait := time.Duration(0); attempts < 100 && wait == 0; attempts++ {
			wait, _ = p.reject(c, tt.credentials(attempts))
		}
		if blocked := attempts < 100; blocked != tt.blocked {
			t.Errorf("%s: %d attempts before it is blocked", tt.name, attempts)
		}
	}
}
