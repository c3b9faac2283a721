package admission

import (
	"container/list"
	"time"

	"schedrestd/internal/limit"
	"schedrestd/internal/penalty"
	"schedrestd/internal/rate"
	"schedrestd/ipc/work"
)

// penalties records the offences of sources. Workers report the offences, but
// the source of a connection is known from the kernel, not from the worker.
type penalties struct {
	debts    *penalty.Table[Source]
	rejected *rate.Buckets[uint64] // by the hash of the credential
	offences [penalty.Kinds]uint64
	blocks   uint64
}

func newPenalties(rules penalty.Rules) penalties {
	return penalties{debts: penalty.New[Source](limit.SourceDebts, rules), rejected: rate.NewBuckets[uint64](limit.RejectedCredentials)}
}

// BlockedFor returns how much longer the source of c is blocked, or 0.
func (s *State) BlockedFor(now time.Time, c *Conn) time.Duration {
	if c.Exempt {
		return 0
	}
	return s.debts.BlockedFor(now, c.Source)
}

// Offence reports an offence by the client of c. If the offence is a rejected
// credential that some worker has already reported, it costs nothing, because a
// client that repeats a credential is not guessing. If the offence blocks the
// source, all connections of the source are paused: their workers answer
// requests with 429. It also costs nothing if the client has left, and is one of
// all local users whose source is the loopback interface: any of them could get
// the others blocked, and one who gets no answer learns nothing from guesses.
func (s *State) Offence(now time.Time, c *Conn, kind penalty.Kind, credential uint64) {
	s.offences[kind]++
	wait := s.BlockedFor(now, c)
	switch {
	case c.Exempt, c.Left:
	case wait > 0: // a worker may have received c after the source was blocked
		s.decide(Decision{Action: Pause, Conn: c, Wait: wait})
	case kind != penalty.Auth || s.rejected.Take(now, credential, 1) == 0:
		s.charge(now, c, kind)
	}
}

// Crash reports that a worker crashed while it had the connections conns. Only
// a request that the worker was answering can be the cause. Each source with
// such a request is charged once. If the worker has not reported the stage of a
// connection, Crash assumes that the worker was answering a request on it.
func (s *State) Crash(now time.Time, conns []*Conn) {
	charged := map[Source]bool{}
	for _, c := range conns {
		if c.stage == work.Answering && !charged[c.Source] {
			charged[c.Source] = true
			s.offences[penalty.Crash]++
			if !c.Exempt {
				s.charge(now, c, penalty.Crash)
			}
		}
	}
}

// charge adds the cost of an offence to the debt of c's source (package
// penalty). If the debt is now too large, charge blocks the source.
func (s *State) charge(now time.Time, c *Conn, kind penalty.Kind) {
	wait, newBlock := s.debts.Offend(now, c.Source, kind)
	if !newBlock {
		return
	}
	s.blocks++
	s.decide(Decision{Action: Report, Conn: c, Wait: wait, Offence: kind})
	for _, l := range []*list.List{&s.resting, &s.busy} {
		for e := l.Front(); e != nil; e = e.Next() {
			if other := e.Value.(*Conn); other.Source == c.Source {
				s.decide(Decision{Action: Pause, Conn: other, Wait: wait})
			}
		}
	}
}

// Stats has the counters of a State.
type Stats struct {
	Slots                  int
	Held, Waiting, Sources int                   // current connections with and without a slot, and their sources
	Waited                 uint64                // connections that had to wait
	Watching, WatchingMax  int                   // connections that have given up their slots while they wait for a change
	Offences               [penalty.Kinds]uint64 // by kind, including those of exempt sources
	Blocks                 uint64                // how often a source was blocked
	Debts                  int
	Evicted                uint64 // debts that were dropped for lack of space
}

func (s *State) Stats() Stats {
	debts, evicted := s.debts.Len()
	return Stats{
		Slots: s.size, Held: s.queue.Used() + s.excused, Waiting: s.queue.Len(), Sources: s.queue.Keys(), Waited: s.waited,
		Watching: s.watchers.Used(), WatchingMax: s.watchers.Used() + s.watchers.Free(),
		Offences: s.offences, Blocks: s.blocks, Debts: debts, Evicted: evicted,
	}
}
