// Package penalty remembers who has offended, and how long he has to wait: as OpenSSH does for each
// source of connections (PerSourcePenalties in sshd_config(5)).
//
// Each offence costs seconds, which pass. As long as a source owes no more than a threshold, nothing
// happens: those are honest mistakes. Over it the source has to wait, as long as its offence costs, the
// next time twice as long, and at the most ten times. What it does while it waits
// costs nothing: who has told a thousand clients a token that has expired waits no longer than with one.
//
// The package asks no clock, and knows neither who is exempt nor what a source is. The way in is New.
package penalty

import (
	"sync"
	"time"
)

// Kind is a kind of offence.
type Kind uint8

// The kinds.
const (
	Auth      Kind = iota // nobody's credential
	Malformed             // no request
	Crash                 // its worker died while it was answering
	Kinds
)

// String is the kind's name in logs and settings.
func (k Kind) String() string { return [...]string{"auth", "malformed", "crash"}[k] }

// Rules is what offences cost.
type Rules struct {
	Cost      [Kinds]time.Duration // 0: nothing
	Threshold time.Duration        // what a source may owe; 0: there are no penalties
}

// Most is how many times an offence's cost a pause is at the most.
const Most = 10

// Table is what each source owes. The zero of a pointer to it is one without penalties.
type Table[S comparable] struct {
	rules Rules
	size  int

	mu      sync.Mutex
	list    map[S]*debt
	evicted uint64
}

// debt is what one source owes.
type debt struct {
	until  time.Time     // when it owes nothing any more, and is forgotten
	paused time.Time     // until when it has to wait
	pause  time.Duration // the last one
}

// New is an empty table of at most so many sources; nil when the rules have no threshold.
func New[S comparable](rules Rules, size int) *Table[S] {
	if rules.Threshold <= 0 {
		return nil
	}
	return &Table[S]{rules: rules, size: size, list: map[S]*debt{}}
}

// Offend notes an offence, and gives how long the source has to wait from now on; 0: not at all. begun
// tells whether that is because of this one.
func (t *Table[S]) Offend(now time.Time, s S, kind Kind) (wait time.Duration, begun bool) {
	if t == nil || t.rules.Cost[kind] <= 0 {
		return 0, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.list[s]
	switch {
	case d == nil:
		t.room(now)
		d = &debt{until: now}
		t.list[s] = d
	case now.Before(d.paused):
		return d.paused.Sub(now), false
	case !now.Before(d.until): // it is another day
		*d = debt{until: now}
	}
	cost := t.rules.Cost[kind]
	if d.until = d.until.Add(cost); d.until.Sub(now) <= t.rules.Threshold {
		return 0, false
	}
	d.pause = min(max(2*d.pause, cost), max(Most*cost, d.pause))
	d.paused = now.Add(d.pause)
	d.until = d.paused.Add(t.rules.Threshold) // the next one after it, if it comes soon, counts at once
	return d.pause, true
}

// Wait is how long a source still has to wait; 0: not at all.
func (t *Table[S]) Wait(now time.Time, s S) time.Duration {
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.list[s]
	if d == nil {
		return 0
	}
	if !now.Before(d.until) {
		delete(t.list, s)
		return 0
	}
	return max(0, d.paused.Sub(now))
}

// Len is how many sources owe something, or did when they were last looked at, and how many were forgotten
// for want of room.
func (t *Table[S]) Len() (sources int, evicted uint64) {
	if t == nil {
		return 0, 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.list), t.evicted
}

// sample is how many are looked at to find one who owes little: to look at all of them for each new one would be
// work that anybody with many addresses could make.
const sample = 64

// room forgets one of those who owe least when the table is full; t.mu is held. So who comes with ever
// new addresses forgives himself, and not those who wait.
func (t *Table[S]) room(now time.Time) {
	if len(t.list) < t.size {
		return
	}
	var least S
	var found *debt
	looked := 0
	for s, d := range t.list { // in an order that nobody knows
		if !now.Before(d.until) {
			delete(t.list, s)
			return
		}
		if found == nil || d.until.Before(found.until) {
			least, found = s, d
		}
		if looked++; looked == sample {
			break
		}
	}
	delete(t.list, least)
	t.evicted++
}
