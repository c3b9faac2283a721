// Package penalty records which sources of requests, such as client addresses,
// have committed offences, and how long these sources are blocked. The model is
// PerSourcePenalties of OpenSSH (sshd_config(5)).
//
// Each kind of offence has a cost in seconds. Each offence adds its cost to a
// debt, which decreases as time passes. A debt up to a threshold has no
// consequence, because honest clients make mistakes too. An offence that raises
// the debt above the threshold blocks the source for as many seconds as the
// offence costs. Each further block is twice as long as the one before, up to
// ten times the cost. Offences during a block cost nothing. So a source whose
// thousand clients use the same expired token is blocked no longer than a
// source with one such client.
//
// A source has a separate debt for each kind of offence, and these rules apply
// to each debt. If small debts of different kinds added up, they could block a
// web portal, which sends the requests of many users.
//
// The package reads no clock, takes no lock, and does not know which sources
// are exempt or what a source is. Start with New. Row
// RejectedCredentials of package limit distinguishes a repeated credential from a
// new guess.
package penalty

import "time"

// Kind is a kind of offence.
type Kind uint8

const (
	Auth      Kind = iota // an invalid credential
	Malformed             // malformed input
	Crash                 // a worker crashed while it answered a request from the source
	Kinds
)

// String returns the kind's name in logs and settings.
func (k Kind) String() string { return [...]string{"auth", "malformed", "crash"}[k] }

// Rules has the costs of offences.
type Rules struct {
	Cost      [Kinds]time.Duration // 0: this kind costs nothing
	Threshold time.Duration        // a source is blocked if its debt of any kind exceeds this; 0 disables penalties
}

// maxMultiple limits how long a source stays blocked: at most this many times
// the cost of the offence that caused the block.
const maxMultiple = 10

// A Row describes a table of what is remembered about the sources of requests. All
// rows of this program are in the table of package limit.
type Row struct {
	Name, Process, Key string // what is remembered, in each process of this kind, and about what
	Size               int    // how many; a full table forgets one
}

// Table records the debts of each source of requests.
type Table[S comparable] struct {
	rules Rules
	size  int

	debts   map[account[S]]*debt
	evicted uint64
}

// account identifies a debt.
type account[S comparable] struct {
	source S
	kind   Kind
}

// debt is what one source of requests owes for one kind of offence.
type debt struct {
	expires      time.Time     // when the debt is 0
	blockedUntil time.Time     // when the last block ends
	lastBlock    time.Duration // length of the last block
}

// New returns an empty table with the size of a row.
func New[S comparable](row Row, rules Rules) *Table[S] {
	return &Table[S]{rules: rules, size: row.Size, debts: map[account[S]]*debt{}}
}

// Offend records an offence. It returns how long the source will be blocked for
// offences of this kind, and whether this offence began the block.
func (t *Table[S]) Offend(now time.Time, s S, kind Kind) (wait time.Duration, newBlock bool) {
	if t.rules.Threshold <= 0 || t.rules.Cost[kind] <= 0 {
		return 0, false
	}
	a := account[S]{s, kind}
	d := t.debts[a]
	switch {
	case d == nil:
		t.evict(now)
		d = &debt{expires: now}
		t.debts[a] = d
	case now.Before(d.blockedUntil):
		return d.blockedUntil.Sub(now), false
	case !now.Before(d.expires): // the previous debt has ended
		*d = debt{expires: now}
	}
	cost := t.rules.Cost[kind]
	if d.expires = d.expires.Add(cost); d.expires.Sub(now) <= t.rules.Threshold {
		return 0, false
	}
	d.lastBlock = min(max(2*d.lastBlock, cost), maxMultiple*cost)
	d.blockedUntil = now.Add(d.lastBlock)
	d.expires = d.blockedUntil.Add(t.rules.Threshold) // an offence soon after the end of the block starts the next block immediately
	return d.lastBlock, true
}

// BlockedFor returns how long a source is still blocked, for any kind of
// offence.
func (t *Table[S]) BlockedFor(now time.Time, s S) (longest time.Duration) {
	for kind := range Kinds {
		a := account[S]{s, kind}
		d := t.debts[a]
		if d == nil {
			continue
		}
		if !now.Before(d.expires) {
			delete(t.debts, a)
			continue
		}
		longest = max(longest, d.blockedUntil.Sub(now))
	}
	return longest
}

// Len returns the number of debts, and how many debts were dropped because the
// table was full. The first number includes each expired debt until the table
// next looks it up.
func (t *Table[S]) Len() (debts int, evicted uint64) {
	return len(t.debts), t.evicted
}

// sample is the number of debts that evict compares to find a small one. If
// evict compared all debts for each new source, an attacker with many addresses
// could cause a lot of work.
const sample = 64

// evict drops a small debt if the table is full. So an attacker who keeps using
// new addresses mostly displaces the debts of these addresses, and not the
// large debts of blocked sources.
func (t *Table[S]) evict(now time.Time) {
	if len(t.debts) < t.size {
		return
	}
	var victim account[S]
	var smallest *debt
	scanned := 0
	for a, d := range t.debts { // in an unpredictable order
		if !now.Before(d.expires) {
			delete(t.debts, a)
			return
		}
		if smallest == nil || d.expires.Before(smallest.expires) {
			victim, smallest = a, d
		}
		if scanned++; scanned == sample {
			break
		}
	}
	delete(t.debts, victim)
	t.evicted++
}
