package auditor

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// journal is the audit log: one goroutine that writes, and a queue that never
// blocks. docs/AUDIT.md has the format.
type journal struct {
	failOpen bool   // make changes even when nothing can be written
	run      string // id of this process: the first part of each change's id
	now      func() time.Time
	last     atomic.Uint64
	patience time.Duration // time limit for writing an intent; after it the intent is refused
	counts   journalCounts

	mu    sync.Mutex
	queue []record
	owed  int  // outcomes that are expected or queued
	lost  int  // lines dropped since the last successful write
	ill   bool // the last write failed
	over  bool
	wake  chan struct{} // signals that there is something to do
	gone  chan struct{} // closed when the goroutine has returned
}

// journalCounts counts what happened since the start.
type journalCounts struct {
	lines, failed           count // lines written completely; failed writes
	granted, refused, later count // intents by answer
	lost                    count // dropped lines
}

// record is one queued line.
type record struct {
	text   []byte
	intent *intent // nil: an outcome, which is retried until it is written
}

// intent is a change that waits for its line. Its writer or its timer answers
// it, whichever is first.
type intent struct {
	answered atomic.Bool
	answer   func(granted bool)
	late     *time.Timer
	unmade   func() []byte // returns the line that says that the change was not made
}

// done answers once. It reports false when the intent was already answered.
func (i *intent) done(granted bool) bool {
	if !i.answered.CompareAndSwap(false, true) {
		return false
	}
	i.late.Stop()
	i.answer(granted)
	return true
}

const (
	mostOwed   = 8192            // concurrent changes of all workers; beyond it they are refused
	writeLimit = 5 * time.Second // for an intent's line
	retryPause = time.Second     // between two attempts to write outcomes
	batchSize  = 256 << 10       // bytes written at once
	partialEnd = "\n"            // separates a partial line from the next one
)

func newJournal(failOpen bool) (*journal, error) {
	var run [8]byte
	if _, err := rand.Read(run[:]); err != nil {
		return nil, fmt.Errorf("create an id for this run of the audit log: %w", err)
	}
	return &journal{failOpen: failOpen, run: hex.EncodeToString(run[:]), now: time.Now, patience: writeLimit,
		wake: make(chan struct{}, 1), gone: make(chan struct{})}, nil
}

// name returns the id of one more change, unique over all runs.
func (a *journal) name() string { return fmt.Sprintf("%s-%d", a.run, a.last.Add(1)) }

// isFair reports whether a worker with that many open changes may have one
// more: while there is room for as many again. So a captured worker that
// completes no change gets half of the room, another one half of the rest, and
// all others still find room.
func (a *journal) isFair(under int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return under == 0 || under < mostOwed-a.owed
}

// intend queues the line of a change, and calls answer from another goroutine;
// granted reports whether the change may be made. It never waits. Each granted
// change owes an outcome.
func (a *journal) intend(text []byte, unmade func() []byte, answer func(granted bool)) {
	i := &intent{answer: answer, unmade: unmade}
	a.mu.Lock()
	full := a.over || a.owed >= mostOwed
	switch {
	case !full:
		a.owed++
		i.late = time.AfterFunc(a.patience, func() { a.expire(i) })
		a.queue = append(a.queue, record{text, i})
	case a.failOpen:
		a.owed++
		a.lose()
	}
	a.mu.Unlock()
	if full {
		answer(a.failOpen)
		return
	}
	a.poke()
}

// expire ends the time of an intent that was not written.
func (a *journal) expire(i *intent) {
	a.mu.Lock()
	//lint:ignore SA2001 it waits until intend has set the timer
	a.mu.Unlock()
	if !i.done(a.failOpen) {
		return
	}
	a.mu.Lock()
	if !a.failOpen {
		a.owed--
	}
	first := !a.ill
	a.ill = true
	a.mu.Unlock()
	if first {
		a.complain(fmt.Errorf("no line was written for %s", a.patience))
	}
}

// settle ends a granted change with its line. nil means that no line is owed
// after all.
func (a *journal) settle(text []byte) {
	a.mu.Lock()
	switch {
	case text == nil:
		a.owed--
	case a.failOpen && len(a.queue) >= 2*mostOwed:
		a.owed--
		a.lose()
	default:
		a.queue = append(a.queue, record{text: text})
	}
	a.mu.Unlock()
	a.poke()
}

// lose counts a dropped line. a.mu is held.
func (a *journal) lose() {
	a.lost++
	a.counts.lost.add(1)
}

func (a *journal) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// close writes what is queued, and returns when that is done or its time is
// over.
func (a *journal) close() {
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	a.poke()
	select {
	case <-a.gone:
	case <-time.After(a.patience):
	}
	a.mu.Lock()
	left := len(a.queue)
	a.mu.Unlock()
	if left > 0 {
		slog.Error("audit log not writable; unwritten lines are lost", "lines", left)
	}
}

// write writes the queue, in a goroutine of its own. A file that hangs, as one
// on a network can, delays only this goroutine.
func (a *journal) write(to sink) {
	defer close(a.gone)
	retry := time.NewTimer(0)
	for {
		select {
		case <-a.wake:
		case <-retry.C:
		}
		for a.turn(to) {
		}
		a.mu.Lock()
		idle, over := len(a.queue) == 0, a.over
		a.mu.Unlock()
		if over {
			return // turn has tried the rest a last time
		}
		if !idle {
			retry.Reset(retryPause)
		}
	}
}

// turn writes a part of the queue, and reports whether there may be more to do
// at once.
func (a *journal) turn(to sink) bool {
	a.mu.Lock()
	batch := a.takeBatch()
	a.mu.Unlock()
	if len(batch) == 0 {
		return false
	}
	whole, err := a.put(to, batch)
	a.judge(batch[:whole], batch[whole:], err)
	return err == nil
}

// takeBatch removes the next lines from the queue, and drops expired intents.
// a.mu is held.
func (a *journal) takeBatch() (batch []record) {
	size, n := 0, 0
	for ; n < len(a.queue) && size < batchSize; n++ {
		r := a.queue[n]
		if r.intent != nil && r.intent.answered.Load() {
			if a.failOpen {
				a.lose()
			}
			continue
		}
		size += len(r.text)
		batch = append(batch, r)
	}
	a.queue = a.queue[n:]
	if len(a.queue) == 0 {
		a.queue = nil
	}
	return batch
}

// put writes a batch at once, and returns how many of its lines are in the file
// completely.
func (a *journal) put(to sink, batch []record) (whole int, err error) {
	var text []byte
	for _, r := range batch {
		text = append(text, r.text...)
	}
	n, err := to.append(text)
	if err != nil {
		for _, r := range batch {
			if n -= len(r.text); n < 0 {
				break
			}
			whole++
		}
		return whole, err
	}
	return len(batch), nil
}

// judge answers a batch: the lines that were written, and the rest.
func (a *journal) judge(written, rest []record, err error) {
	a.sayHealth(err)
	a.counts.lines.add(len(written))
	for _, r := range written {
		switch {
		case r.intent == nil:
			a.settle(nil)
		case !r.intent.done(true) && !a.failOpen: // it expired while it was written
			a.disown(r.intent, false)
		}
	}
	var back []record
	for _, r := range rest {
		if r.intent == nil {
			back = append(back, r)
			continue
		}
		switch first := r.intent.done(a.failOpen); {
		case a.failOpen:
			a.mu.Lock()
			a.lose()
			a.mu.Unlock()
		case errors.Is(err, errUnsure): // the line may be there
			a.disown(r.intent, first)
		case first:
			a.settle(nil)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = append(back, a.queue...)
}

// disown writes that a change was not made, although its intent is or may be in
// the log. When expire came first, it assumed that there is no line, so the
// outcome is owed again.
func (a *journal) disown(i *intent, first bool) {
	if !first {
		a.mu.Lock()
		a.owed++
		a.mu.Unlock()
	}
	a.settle(i.unmade())
}

// sayHealth logs when the log can't be written any longer, and when it can
// again.
func (a *journal) sayHealth(err error) {
	a.mu.Lock()
	was, lost := a.ill, a.lost
	if a.ill = err != nil; !a.ill {
		a.lost = 0
	} else {
		a.counts.failed.add(1)
	}
	a.mu.Unlock()
	switch {
	case err != nil && !was:
		a.complain(err)
	case err == nil && was:
		slog.Warn("audit log writable again", "lines_lost", lost)
	}
}

func (a *journal) complain(err error) {
	if a.failOpen {
		slog.Error("audit log not writable; changes are made unrecorded (SCHEDRESTD_AUDIT_FAIL=open)", "error", err)
		return
	}
	slog.Error("audit log not writable; changes are refused", "error", err)
}
