package admission

import (
	"container/list"
	"time"

	"schedrestd/ipc/work"
	"schedrestd/penalty"
)

// penalties records which sources offended. The offences come from the workers'
// reports, the sources from the kernel.
type penalties struct {
	debts    *penalty.Table[Source]
	rejected *penalty.Memory // the credentials of offences
	offences [penalty.Kinds]uint64
	blocked  uint64
}

// The limits on the offences that are remembered.
const (
	mostDebts       = 10_000
	mostCredentials = 16_384 // 20 bytes each
)

func newPenalties(rules penalty.Rules) penalties {
	return penalties{debts: penalty.New[Source](rules, mostDebts), rejected: penalty.NewMemory(mostCredentials)}
}

// Blocked returns how long c's source is still blocked; 0: not at all.
func (s *State) Blocked(now time.Time, c *Conn) time.Duration {
	if c.Exempt {
		return 0
	}
	return s.debts.Wait(now, c.Source)
}

// Offence reports an offence by the client of c. A credential that was rejected
// before costs nothing, whichever worker reports it: a client that repeats it
// guesses nothing. When this offence blocks the source, all its connections are
// paused.
func (s *State) Offence(now time.Time, c *Conn, kind penalty.Kind, credential uint64) {
	s.offences[kind]++
	wait := s.Blocked(now, c)
	switch {
	case c.Exempt:
	case wait > 0: // the connection may have come since
		s.decide(Decision{Do: Pause, Conn: c, Wait: wait})
	case kind != penalty.Auth || s.rejected.Add(credential):
		s.charge(now, c, kind)
	}
}

// Crash reports that a worker crashed while it held conns. Only connections
// that it was answering may be the cause. It counts as one crash for each of
// their sources.
func (s *State) Crash(now time.Time, conns []*Conn) {
	known := map[Source]bool{}
	for _, c := range conns {
		if c.stage == work.Answering && !known[c.Source] {
			known[c.Source] = true
			s.offences[penalty.Crash]++
			if !c.Exempt {
				s.charge(now, c, penalty.Crash)
			}
		}
	}
}

// charge records an offence of c's source, and blocks the source when it owes
// too much.
func (s *State) charge(now time.Time, c *Conn, kind penalty.Kind) {
	wait, begun := s.debts.Offend(now, c.Source, kind)
	if !begun {
		return
	}
	s.blocked++
	s.decide(Decision{Do: Report, Conn: c, Wait: wait, Offence: kind})
	for _, l := range []*list.List{&s.resting, &s.busy} {
		for e := l.Front(); e != nil; e = e.Next() {
			if other := e.Value.(*Conn); other.Source == c.Source {
				s.decide(Decision{Do: Pause, Conn: other, Wait: wait})
			}
		}
	}
}

// Stats holds the counters of a State.
type Stats struct {
	Slots                  int
	Held, Waiting, Sources int                   // now: connections with and without a slot, and their sources
	Parked                 uint64                // connections that had to wait
	Offences               [penalty.Kinds]uint64 // by kind, exempt sources' too
	Blocked                uint64                // how often a source was blocked
	Debts                  int
	Forgotten              uint64 // debts, for lack of space
}

// Stats returns the counters.
func (s *State) Stats() Stats {
	debts, forgotten := s.debts.Len()
	return Stats{
		Slots: s.size, Held: s.size - s.free + s.excused, Waiting: s.waits, Sources: len(s.sources), Parked: s.parked,
		Offences: s.offences, Blocked: s.blocked, Debts: debts, Forgotten: forgotten,
	}
}
