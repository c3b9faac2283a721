package ipc

import (
	"bytes"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// seeds are frames of every kind, with nothing in them and with something everywhere, and some that break the book.
func seeds(f *testing.F) {
	for _, r := range book {
		for _, frame := range [][]byte{frameOf(f, least(r)), frameOf(f, full(r))} {
			for p := range phases {
				f.Add(uint8(p), uint8(r.FDs), frame)
			}
		}
	}
	f.Add(uint8(Serving), uint8(0), []byte{byte(KindDial), 0, 0, 0, 0, 0, 0, 0, 0, byte(WayAccountingMunge + 1), 0})
	f.Add(uint8(Serving), uint8(1), []byte{})
	f.Add(uint8(Told), uint8(0), []byte{byte(KindPosture), 0xff, 0xff, 1, 0})
}

// fuzzSide feeds packets to one end. Whatever is accepted must have been permitted by
// the book, and must encode back to the very same bytes: no second spelling, no
// leftover, no allocation that the bytes don't account for.
func fuzzSide(f *testing.F, self, peer Role) {
	seeds(f)
	f.Fuzz(func(t *testing.T, phase, fds uint8, frame []byte) {
		c := &Channel{self: self, peer: peer, phase: Phase(phase % uint8(phases))}
		before := c.phase
		var oob []byte
		if n := int(fds) % maxRights; n > 0 {
			oob = unix.UnixRights(slices.Repeat([]int{1 << 30}, n)...) // nobody has that one: to close it is no harm
		}
		r, err := c.judge(frame, oob, 0)
		if err != nil {
			if c.phase != before {
				t.Fatalf("a refused message led from %s to %s", before, c.phase)
			}
			return
		}
		row, _ := rowOf(r.Kind())
		if !row.From.Has(peer) || !row.To.Has(self) || !row.Phases.Has(before) {
			t.Fatalf("%s was accepted while %s", r.Kind(), before)
		}
		again, err := encode(r.Message)
		if err != nil || !bytes.Equal(again, frame) {
			t.Fatalf("read %x, written back %x, %v", frame, again, err)
		}
	})
}

// FuzzFromWorker is the parent reading a captured worker.
func FuzzFromWorker(f *testing.F) { fuzzSide(f, Parent, Worker) }

// FuzzFromParent is the worker reading the parent.
func FuzzFromParent(f *testing.F) { fuzzSide(f, Worker, Parent) }

// FuzzKeeperFromWorker is the keeper reading a captured worker.
func FuzzKeeperFromWorker(f *testing.F) { fuzzSide(f, Keeper, Worker) }

// FuzzFromKeeper is a worker reading the keeper.
func FuzzFromKeeper(f *testing.F) { fuzzSide(f, Worker, Keeper) }

// FuzzParentFromKeeper is the parent reading a captured keeper.
func FuzzParentFromKeeper(f *testing.F) { fuzzSide(f, Parent, Keeper) }

// FuzzKeeperFromParent is the keeper reading the parent.
func FuzzKeeperFromParent(f *testing.F) { fuzzSide(f, Keeper, Parent) }

// FuzzResolverFromWorker is the resolver reading a captured worker.
func FuzzResolverFromWorker(f *testing.F) { fuzzSide(f, Resolver, Worker) }

// FuzzFromResolver is a worker reading a captured resolver.
func FuzzFromResolver(f *testing.F) { fuzzSide(f, Worker, Resolver) }

// FuzzParentFromResolver is the parent reading a captured resolver.
func FuzzParentFromResolver(f *testing.F) { fuzzSide(f, Parent, Resolver) }

// FuzzAuditorFromWorker is the auditor reading a captured worker.
func FuzzAuditorFromWorker(f *testing.F) { fuzzSide(f, Auditor, Worker) }

// FuzzFromAuditor is a worker reading a captured auditor.
func FuzzFromAuditor(f *testing.F) { fuzzSide(f, Worker, Auditor) }

// FuzzParentFromAuditor is the parent reading a captured auditor.
func FuzzParentFromAuditor(f *testing.F) { fuzzSide(f, Parent, Auditor) }

// FuzzRights reads control messages as the kernel never sends them.
func FuzzRights(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{24, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, oob []byte) {
		fds, _ := parseRights(oob)
		if len(fds)*4 > len(oob) {
			t.Fatalf("%d descriptors out of %d bytes", len(fds), len(oob))
		}
	})
}
