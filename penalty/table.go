// Package penalty remembers who has offended, and how long he has to wait: as OpenSSH does for each
// source of connections (PerSourcePenalties in sshd_config(5)).
//
// Each offence costs seconds, which pass. As long as a source owes no more than a threshold, nothing
// happens: those are honest mistakes. Over it the source has to wait, as long as its offence costs, the
// next time twice as long, and at the most ten times. What it does while it waits
// costs nothing: who has told a thousand clients a token that has expired waits no longer than with one.
//
// A source has a debt of its own for each kind of offence, and the threshold
// holds for each debt. A portal that owes a little for one user's mistakes and
// a little for another's is not blocked for the sum.
//
// The package asks no clock, takes no lock, and knows neither which sources are
// exempt nor what a source is. The way in is New.
// Memory tells a credential that is tried again from another guess.
package penalty

import "time"

// Kind is a kind of offence.
type Kind uint8

// The kinds.
const (
	Auth      Kind = iota // nobody's credential
	Malformed             // no request
	Crash                 // its worker crashed while it was answering
	Kinds
)

// String is the kind's name in logs and settings.
func (k Kind) String() string { return [...]string{"auth", "malformed", "crash"}[k] }

// Rules is what offences cost.
type Rules struct {
	Cost      [Kinds]time.Duration // 0: nothing
	Threshold time.Duration        // what a source may owe for each kind; 0: there are no penalties
}

// Most is how many times an offence's cost a pause is at the most.
const Most = 10

// Table is what each source owes. The zero of a pointer to it is one without penalties.
type Table[S comparable] struct {
	rules Rules
	size  int

	list    map[account[S]]*debt
	evicted uint64
}

// account identifies a debt.
type account[S comparable] struct {
	source S
	kind   Kind
}

// debt is what one source owes for one kind of offence.
type debt struct {
	until  time.Time     // when it owes nothing any more, and is forgotten
	paused time.Time     // until when it has to wait
	pause  time.Duration // the last one
}

// New returns an empty table of at most size debts, or nil when the rules have no threshold.
func New[S comparable](rules Rules, size int) *Table[S] {
	if rules.Threshold <= 0 {
		return nil
	}
	return &Table[S]{rules: rules, size: size, list: map[account[S]]*debt{}}
}

// Offend notes an offence and returns how long the source has to wait for
// offences of this kind. begun reports whether this offence began the wait.
func (t *Table[S]) Offend(now time.Time, s S, kind Kind) (wait time.Duration, begun bool) {
	if t == nil || t.rules.Cost[kind] <= 0 {
		return 0, false
	}
	a := account[S]{s, kind}
	d := t.list[a]
	switch {
	case d == nil:
		t.room(now)
		d = &debt{until: now}
		t.list[a] = d
	case now.Before(d.paused):
		return d.paused.Sub(now), false
	case !now.Before(d.until): // it is another day
		*d = debt{until: now}
	}
	cost := t.rules.Cost[kind]
	if d.until = d.until.Add(cost); d.until.Sub(now) <= t.rules.Threshold {
		return 0, false
	}
	d.pause = min(max(2*d.pause, cost), Most*cost)
	d.paused = now.Add(d.pause)
	d.until = d.paused.Add(t.rules.Threshold) // the next one after it, if it comes soon, counts at once
	return d.pause, true
}

// Wait returns how long a source still has to wait, for whatever kind.
func (t *Table[S]) Wait(now time.Time, s S) (longest time.Duration) {
	if t == nil {
		return 0
	}
	for kind := range Kinds {
		a := account[S]{s, kind}
		d := t.list[a]
		if d == nil {
			continue
		}
		if !now.Before(d.until) {
			delete(t.list, a)
			continue
		}
		longest = max(longest, d.paused.Sub(now))
	}
	return longest
}

// Len returns how many debts there are, expired ones that nobody has looked at since included, and
// how many were forgotten for want of room.
func (t *Table[S]) Len() (debts int, evicted uint64) {
	if t == nil {
		return 0, 0
	}
	return len(t.list), t.evicted
}

// sample is how many are looked at to find one who owes little: to look at all of them for each new one would be
// work that anybody with many addresses could make.
const sample = 64

// room forgets one of those who owe least when the table is full. So who comes with ever
// new addresses forgives himself, and not those who wait.
func (t *Table[S]) room(now time.Time) {
	if len(t.list) < t.size {
		return
	}
	var least account[S]
	var found *debt
	looked := 0
	for a, d := range t.list { // in an order that nobody knows
		if !now.Before(d.until) {
			delete(t.list, a)
			return
		}
		if found == nil || d.until.Before(found.until) {
			least, found = a, d
		}
		if looked++; looked == sample {
			break
		}
	}
	delete(t.list, least)
	t.evicted++
}
