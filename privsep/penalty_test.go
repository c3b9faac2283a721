package privsep

import (
	"io"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/penalty"
	"schedrestd/rate"
)

// TestPenaltiesBySource: a /64 is one source however many addresses it has, a crash counts once for each source, and
// who is exempt owes nothing.
func TestPenaltiesBySource(t *testing.T) {
	p := newPenalties(ipc.Admission{Auth: time.Second, Crash: 15 * time.Second, Threshold: 30 * time.Second}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	of := func(addr string) *connection {
		return &connection{source: sourceOf(&unix.SockaddrInet6{Addr: netip.MustParseAddr(addr).As16()}, ipc.Connection{})}
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
	w := &worker{process: &process{channel: channel}, held: map[uint64]*connection{1: mine, 2: waiting}, offences: rate.New(offenceBurst, offenceRate, time.Now())}
	for _, id := range []uint64{2, 3} {
		if p.offence(w, &ipc.Offence{ID: id, What: ipc.WrongCredential}) == nil {
			t.Errorf("it may report connection %d, which it does not hold", id)
		}
	}
	var refused error
	for range 100 * offenceBurst {
		if refused = p.offence(w, &ipc.Offence{ID: 1, What: ipc.WrongCredential}); refused != nil {
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
