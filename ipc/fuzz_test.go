package ipc

import (
	"bytes"
	"testing"
)

// seeds are frames of every kind that has a reader, and some that break the book.
func seeds(f *testing.F) {
	for _, m := range []Message{fullSetup(), new(Setup), &Posture{Facts: []Fact{{"uid", "1 1 1"}, {"groups", ""}}},
		&Ready{}, Refuse("a reason"), &Connection{ID: 9, Network: TCP, Listener: ":80", Addr: "192.0.2.1:99", UID: NoID},
		&Taken{ID: 7}, &Done{ID: 1 << 63}, &Ping{Number: 1}, &Pong{Number: 1}, &Drain{},
		&Progress{ID: 3, Stage: Resting}, &Yield{ID: 3}, &Retire{}, &Streams{Connection{Network: Stdio}}, &KeeperSetup{Book: BookVersion}, &KeyFD{Number: 1}, &Kept{Number: 1, Reason: "no"},
		&Client{Number: 2}, &Breach{Number: 2, Reason: "no"}, &KeeperFD{}, &Certificate{Number: 1}, &ClientCA{}, &Tickets{Keys: [][32]byte{{1}}}, &Sign{ID: 1, Message: []byte("m")}, &Signed{ID: 1},
		&TokenKeyFD{Number: 2, Followed: true}, &Verify{ID: 1, Signed: []byte("a.b")}, &Verified{ID: 1, Verdict: Forged}, &JWKSFD{}, &KeyChanged{},
		&Dial{ID: 1, Way: WayAccounting, Index: 1}, &Dialed{ID: 1, Owner: NoID, Server: NoID}, &Undialed{ID: 1, Errno: 111}, &Stock{Way: WayFront}, &Spares{Stock{Index: 2}}, &Who{ID: 1, Group: true, Number: 9}, &Known{ID: 1, Sure: true, Name: "alice"},
		&Offence{ID: 1, What: WrongRequest}, &Pause{ID: 1, Seconds: 2},
		&Intent{ID: 1, Connection: 2, User: "alice", UID: NoID, Method: "DELETE", Object: "12"}, &Noted{ID: 1, Leave: Later}, &Outcome{ID: 1, Status: 200, Code: "ok"}} {
		frame, err := encode(m)
		if err != nil {
			f.Fatal(err)
		}
		for p := range phases {
			f.Add(uint8(p), uint8(m.Kind()%2), frame)
		}
	}
	f.Add(uint8(Serving), uint8(0), []byte{byte(KindDial), 0, 0, 0, 0, 0, 0, 0, 0, byte(ways), 0})
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
		r, err := c.judge(frame, nil, 0)
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

// FuzzKeeperFromParent is the keeper reading the parent.
func FuzzKeeperFromParent(f *testing.F) { fuzzSide(f, Keeper, Parent) }

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
