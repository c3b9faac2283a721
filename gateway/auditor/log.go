package auditor

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/internal/limit"
	"schedrestd/ipc"
)

// A journal is the audit log. One goroutine writes the lines. Other goroutines
// queue lines for it, and never wait. docs/AUDIT.md describes the format.
type journal struct {
	failOpen bool   // grant changes even if nothing can be written
	path     string // of the file, for the gateway's log; "" for standard error
	runID    string // id of this process: the first part of each change's id
	now      func() time.Time
	lastID   atomic.Uint64
	timeout  time.Duration // time limit for writing an intent, after which expire answers it
	counts   journalCounts

	mu      sync.Mutex // guards the fields up to closed
	queue   []record
	writing int  // lines of the batch that is being written
	pending int  // changes whose outcome is not written yet, including those whose intent is not yet answered
	dropped int  // lines dropped since the last successful write
	failing bool // the last write failed
	stuck   bool // the current write takes longer than timeout
	closed  bool
	wake    chan struct{} // signals that the queue has a new entry or that the journal is closed
	done    chan struct{} // closed when the goroutine has returned
}

// journalCounts counts events since the start.
type journalCounts struct {
	lines, failures            count // lines written completely; failed writes
	granted, refused, deferred count // number of intents by answer
	dropped                    count // dropped lines
}

type record struct {
	text   []byte
	intent *intent // nil for an outcome; an outcome is tried again until it is written
}

// An intent is an announced change whose line is not written yet. It is
// answered once: by the goroutine that writes the line, or by the timer.
type intent struct {
	answered    atomic.Bool
	answer      func(granted bool) // tells the worker
	timer       *time.Timer
	notMadeLine func() []byte // returns a line that records that the change was not made
}

// answerOnce answers the intent and returns true. If the intent was already
// answered, answerOnce only returns false.
func (i *intent) answerOnce(granted bool) bool {
	if !i.answered.CompareAndSwap(false, true) {
		return false
	}
	i.timer.Stop()
	i.answer(granted)
	return true
}

const (
	writeLimit = 5 * time.Second // time limit for writing the line of an intent
	retryPause = time.Second     // between two attempts to write outcomes
	batchSize  = 256 << 10       // bytes written at once
	partialEnd = "\n"            // ends a partial line, so that the next line is separate
)

// maxPending is the maximum number of pending changes of all workers together.
var maxPending = limit.OpenChanges.Total

func newJournal(m *ipc.LogFD) (*journal, error) {
	var run [8]byte
	if _, err := rand.Read(run[:]); err != nil {
		return nil, fmt.Errorf("create an id for this run of the audit log: %w", err)
	}
	return &journal{failOpen: m.FailOpen, path: cmp.Or(m.Path, ipc.AuditStderr), runID: hex.EncodeToString(run[:]), now: time.Now, timeout: writeLimit,
		wake: make(chan struct{}, 1), done: make(chan struct{})}, nil
}

// nextID returns an id for the next change. No other change has the same id,
// even in another run.
func (a *journal) nextID() string { return fmt.Sprintf("%s-%d", a.runID, a.lastID.Add(1)) }

// mayBegin reports whether a worker with the given number of open changes may
// begin another. All workers together may have at most maxPending open changes.
// A worker without open changes may always begin one. Any other worker must
// have fewer open changes than this limit still allows. So a compromised worker
// that completes no change uses at most half of the limit, and a second one at
// most half of the rest. Some of the limit is always left for other workers.
func (a *journal) mayBegin(open int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return open == 0 || open < maxPending-a.pending
}

// queueIntent queues the line that announces a change, without waiting. It
// calls the function answer exactly once, with the decision. If the journal is
// closed, maxPending changes are pending, or the file hangs and failOpen is set,
// it calls answer immediately.
// Otherwise the goroutine that writes the lines, or the timer's goroutine,
// calls answer later. The caller must queue an outcome for each granted change.
// The notMade function returns the line that records that the change was not
// made.
func (a *journal) queueIntent(text []byte, notMade func() []byte, answer func(granted bool)) {
	i := &intent{answer: answer, notMadeLine: notMade}
	a.mu.Lock()
	full := a.closed || a.pending >= maxPending || a.failOpen && a.stuck // each change would have to wait for the timeout
	switch {
	case !full:
		a.pending++
		i.timer = time.AfterFunc(a.timeout, func() { a.expire(i) })
		a.queue = append(a.queue, record{text, i})
	case a.failOpen:
		a.pending++
		a.countDroppedLocked()
	}
	a.mu.Unlock()
	if full {
		answer(a.failOpen)
		return
	}
	a.notify()
}

// expire answers an intent whose line was not written within the time limit.
func (a *journal) expire(i *intent) {
	a.mu.Lock()
	//lint:ignore SA2001 it waits until queueIntent has set the timer
	a.mu.Unlock()
	if !i.answerOnce(a.failOpen) {
		return
	}
	a.mu.Lock()
	if !a.failOpen {
		a.pending--
	}
	firstFailure := !a.failing
	a.failing, a.stuck = true, true
	a.mu.Unlock()
	if firstFailure {
		a.logFailure(fmt.Errorf("no line was written for %s", a.timeout))
	}
}

// queueOutcome queues the line of the outcome of a granted change. If text is
// nil, queueOutcome only records that the change is no longer pending.
func (a *journal) queueOutcome(text []byte) {
	a.mu.Lock()
	switch {
	case text == nil:
		a.pending--
	case a.failOpen && len(a.queue) >= 2*maxPending:
		a.pending--
		a.countDroppedLocked()
	default:
		a.queue = append(a.queue, record{text: text})
	}
	a.mu.Unlock()
	a.notify()
}

// countDroppedLocked counts a dropped line.
func (a *journal) countDroppedLocked() {
	a.dropped++
	a.counts.dropped.add(1)
}

func (a *journal) notify() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// close makes the journal write the rest of the queue. It returns after the
// last attempt to write, or when the time limit has expired.
func (a *journal) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.notify()
	select {
	case <-a.done:
	case <-time.After(a.timeout):
	}
	a.mu.Lock()
	unwritten := len(a.queue) + a.writing
	a.mu.Unlock()
	if unwritten > 0 {
		slog.Error("audit log not writable; unwritten lines are lost", "lines", unwritten, "path", a.path)
	}
}

// write writes the queued lines, in a goroutine of its own. So a file that
// hangs, for example on a network, delays nothing else.
func (a *journal) write(to sink) {
	defer close(a.done)
	retry := time.NewTimer(0)
	for {
		select {
		case <-a.wake:
		case <-retry.C:
		}
		for a.writeBatch(to) {
		}
		a.mu.Lock()
		idle, closed := len(a.queue) == 0, a.closed
		a.mu.Unlock()
		if closed {
			return // writeBatch has made the last attempt to write the rest of the queue
		}
		if !idle {
			retry.Reset(retryPause)
		}
	}
}

// writeBatch writes one batch of queued lines, and reports whether the caller
// can try another batch at once.
func (a *journal) writeBatch(to sink) bool {
	a.mu.Lock()
	batch := a.takeBatchLocked()
	a.writing = len(batch)
	a.mu.Unlock()
	if len(batch) == 0 {
		return false
	}
	written, err := a.appendLines(to, batch)
	a.mu.Lock()
	a.writing = 0
	a.dropAnsweredLocked() // so that the log line about the end of a failure counts them
	a.mu.Unlock()
	a.answerBatch(batch[:written], batch[written:], err)
	return err == nil
}

// takeBatchLocked removes the next batch of lines from the queue.
func (a *journal) takeBatchLocked() (batch []record) {
	a.dropAnsweredLocked()
	size, n := 0, 0
	for ; n < len(a.queue) && size < batchSize; n++ {
		size += len(a.queue[n].text)
	}
	batch, a.queue = a.queue[:n:n], a.queue[n:]
	if len(a.queue) == 0 {
		a.queue = nil
	}
	return batch
}

// dropAnsweredLocked removes the intents that were answered before their lines
// were written from the queue. No write is in progress.
func (a *journal) dropAnsweredLocked() {
	a.stuck = false
	a.queue = slices.DeleteFunc(a.queue, func(r record) bool {
		answered := r.intent != nil && r.intent.answered.Load()
		if answered && a.failOpen {
			a.countDroppedLocked()
		}
		return answered
	})
}

// appendLines appends the lines of a batch to the file, and returns how many of
// them were written completely.
func (a *journal) appendLines(to sink, batch []record) (written int, err error) {
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
			written++
		}
		return written, err
	}
	return len(batch), nil
}

// answerBatch answers the intents of a batch, depending on whether their lines
// were written. It puts unwritten outcomes back into the queue.
func (a *journal) answerBatch(written, unwritten []record, err error) {
	a.logHealth(err)
	a.counts.lines.add(len(written))
	for _, r := range written {
		switch {
		case r.intent == nil:
			a.queueOutcome(nil)
		case !r.intent.answerOnce(true) && !a.failOpen: // the intent expired while it was being written
			a.recordNotMade(r.intent, false)
		}
	}
	var retry []record
	for _, r := range unwritten {
		if r.intent == nil {
			retry = append(retry, r)
			continue
		}
		switch firstAnswer := r.intent.answerOnce(a.failOpen); {
		case a.failOpen:
			a.mu.Lock()
			a.countDroppedLocked()
			a.mu.Unlock()
		case errors.Is(err, errSync): // the line may be in the file
			a.recordNotMade(r.intent, firstAnswer)
		case firstAnswer:
			a.queueOutcome(nil)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.queue = append(retry, a.queue...)
}

// recordNotMade queues a line that records that a change was not made. This is
// necessary if the log contains, or may contain, the intent of the change. If
// firstAnswer is false, expire has already answered the intent, and has stopped
// counting the change as pending. In this case recordNotMade counts the change
// as pending again.
func (a *journal) recordNotMade(i *intent, firstAnswer bool) {
	if !firstAnswer {
		a.mu.Lock()
		a.pending++
		a.mu.Unlock()
	}
	a.queueOutcome(i.notMadeLine())
}

// logHealth logs when lines can no longer be written, and when they can be
// written again.
func (a *journal) logHealth(err error) {
	a.mu.Lock()
	wasFailing, dropped := a.failing, a.dropped
	if a.failing = err != nil; !a.failing {
		a.dropped = 0
	} else {
		a.counts.failures.add(1)
	}
	a.mu.Unlock()
	switch {
	case err != nil && !wasFailing:
		a.logFailure(err)
	case err == nil && wasFailing:
		slog.Warn("audit log writable again", "lines_lost", dropped, "path", a.path)
	}
}

func (a *journal) logFailure(err error) {
	if a.failOpen {
		slog.Error("audit log not writable; changes are made unrecorded (SCHEDRESTD_AUDIT_FAIL=open)", "path", a.path, "error", err)
		return
	}
	slog.Error("audit log not writable; changes are refused", "path", a.path, "error", err)
}
