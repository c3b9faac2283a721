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

// journal is the audit log. It has one goroutine that writes, and a queue that
// never blocks. docs/AUDIT.md has the format.
type journal struct {
	failOpen bool   // grant changes even if nothing can be written
	run      string // id of this process: the first part of each change's id
	now      func() time.Time
	last     atomic.Uint64
	patience time.Duration // time limit for writing an intent; afterwards the intent is refused
	counts   journalCounts

	mu    sync.Mutex
	queue []record
	owed  int  // outcomes that are expected or queued
	lost  int  // lines dropped since the last successful write
	ill   bool // the last write failed
	over  bool
	wake  chan struct{} // signals that the queue has entries
	gone  chan struct{} // closed when the goroutine has returned
}

// journalCounts counts events since the start.
type journalCounts struct {
	lines, failed           count // lines written completely; failed writes
	granted, refused, later count // number of intents by answer
	lost                    count // dropped lines
}

// record is one queued line.
type record struct {
	text   []byte
	intent *intent // nil: an outcome, whose write is tried again until it succeeds
}

// intent is a change whose line is not written yet. Either the goroutine that
// writes or the timer answers the intent, whichever is first.
type intent struct {
	answered atomic.Bool
	answer   func(granted bool)
	late     *time.Timer
	unmade   func() []byte // returns a line that records that the change was not made
}

// done answers the intent once. It returns false if the intent was already
// answered.
func (i *intent) done(granted bool) bool {
	if !i.answered.CompareAndSwap(false, true) {
		return false
	}
	i.late.Stop()
	i.answer(granted)
	return true
}

const (
	mostOwed   = 8192            // concurrent changes of all workers; more are refused
	writeLimit = 5 * time.Second // time limit for writing the line of an intent
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

// name returns an id for the next change. It is unique among all runs.
func (a *journal) name() string { return fmt.Sprintf("%s-%d", a.run, a.last.Add(1)) }

// isFair reports whether a worker with the given number of open changes may
// begin another change. All workers together may have mostOwed open changes. A
// worker may begin another one as long as it has fewer open changes than are
// left of this limit. So a compromised worker that completes no change uses
// half of the limit, a second compromised worker uses half of the rest, and
// some of the limit always remains for other workers.
func (a *journal) isFair(under int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return under == 0 || under < mostOwed-a.owed
}

// intend queues the line of a change. Another goroutine calls answer, with true
// if the change may be made. intend never waits. Each granted change must be
// followed by an outcome.
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

// expire answers an intent that was not written before its time limit.
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

// settle queues text, the line of the outcome of a granted change. settle(nil)
// records that the outcome is written, or that none is needed.
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

// close writes the rest of the queue. It returns when everything is written or
// its time limit is over.
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

// write writes the queue, in a goroutine of its own. A file that hangs, for
// example on a network, delays only this goroutine.
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
			return // turn has tried to write the rest for the last time
		}
		if !idle {
			retry.Reset(retryPause)
		}
	}
}

// turn writes a part of the queue, and reports whether the next part can be
// tried at once.
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

// put writes the whole batch, and returns how many of its lines are completely
// in the file.
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

// judge answers the intents of a batch, both those whose lines were written and
// the rest.
func (a *journal) judge(written, rest []record, err error) {
	a.sayHealth(err)
	a.counts.lines.add(len(written))
	for _, r := range written {
		switch {
		case r.intent == nil:
			a.settle(nil)
		case !r.intent.done(true) && !a.failOpen: // the intent expired while it was being written
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
		case errors.Is(err, errUnsure): // the line may be in the file
			a.disown(r.intent, first)
		case first:
			a.settle(nil)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = append(back, a.queue...)
}

// disown queues a line which says that a change was not made. It is needed if
// the line of the change's intent is in the log, or may be. If expire has
// already answered the intent, the parameter first is false. In this case
// expire has assumed that the intent has no line and needs no outcome, so
// disown counts the outcome as expected again.
func (a *journal) disown(i *intent, first bool) {
	if !first {
		a.mu.Lock()
		a.owed++
		a.mu.Unlock()
	}
	a.settle(i.unmade())
}

// sayHealth logs when the log can't be written any longer, and when it can be
// written again.
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
