package pool

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/dispatcher/admission"
	"schedrestd/gateway/dispatcher/process"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// TestLyingOffences checks that a worker can report offences only for
// connections that it has, and only at a limited rate.
func TestLyingOffences(t *testing.T) {
	o := Options{Connections: 4, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	o.Admission = work.Admission{Auth: time.Second, Threshold: time.Second}
	s := running(t, o)
	channel, fd, err := ipc.Pair(ipc.Managers, ipc.Worker)
	if err != nil {
		t.Fatal(err)
	}
	defer channel.Close()
	defer unix.Close(fd)
	p := &Pool{Set: s}
	taken, waiting := &Connection{FD: -1}, &Connection{FD: 99}
	w := &worker{Process: &process.Process{Channel: channel}, held: map[uint64]*Connection{1: taken, 2: waiting}, offences: rate.New(limit.WorkerOffences, time.Now())}
	for i, c := range []*Connection{taken, waiting} {
		c.Source, c.holder, c.Ref = admission.User(uint32(7+i)), channel, c
	}
	for _, id := range []uint64{2, 3} {
		if p.offence(w, &work.Offence{ID: id, Kind: work.BadCredential}) == nil {
			t.Errorf("a report about connection %d, which the worker does not hold, is accepted", id)
		}
	}
	var refused error
	for i := range 100 * int(limit.WorkerOffences.Burst) {
		if refused = p.offence(w, &work.Offence{ID: 1, Kind: work.BadCredential, Credential: uint64(i)}); refused != nil {
			break
		}
	}
	if refused == nil {
		t.Error("the number of reports is not limited")
	}
	now := time.Now()
	if wait := s.Slots.BlockedFor(now, &taken.Conn); wait <= 0 || wait > time.Second {
		t.Errorf("the client is blocked for %s", wait)
	}
	if s.Slots.BlockedFor(now, &waiting.Conn) != 0 {
		t.Error("another source is blocked")
	}
}
