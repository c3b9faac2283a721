package auditor

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"schedrestd/gateway/auditor/claims"
	"schedrestd/internal/keystate"
)

// A ledger keeps the claims of Idempotency-Keys in a file. Only the ledger's
// own goroutine uses this file. Other goroutines queue tasks for the ledger,
// and never wait. docs/IDEMPOTENCY.md lists the guarantees.
type ledger struct {
	store    *claims.Store
	path     string // of the file, for the gateway's log
	counts   ledgerCounts
	dirty    bool  // the current batch has written something
	writeErr error // first write error of the current batch
	damaged  int   // number of damaged claims that has been logged

	mu      sync.Mutex // guards the fields up to closed
	queue   []task
	ends    int  // final states of claims that are not recorded yet
	failing bool // the last batch failed
	closed  bool
	wake    chan struct{} // receives a value when an entry is added to the queue
	done    chan struct{} // closed when the goroutine has returned
}

// A task is a function that may use the file. It is called between the store's
// Begin and Commit. If the file can't be used, fileErr is the reason. The
// function that the task returns is called with the error of Commit.
type task func(fileErr error) (after func(commitErr error))

// ledgerCounts counts events since the start.
type ledgerCounts struct {
	claimed, replayed, refused, failures count
}

// ledgerPause is how long the ledger waits after an error before it tries to
// use the file again.
const ledgerPause = time.Second

// ledgerBatch is the maximum number of tasks that share one sync.
const ledgerBatch = 256

func newLedger(file claims.File, path string) (*ledger, error) {
	var process [8]byte
	if _, err := rand.Read(process[:]); err != nil {
		return nil, fmt.Errorf("create an id for this process in the idempotency file: %w", err)
	}
	return &ledger{store: claims.New(file, process, claims.SystemClock()), path: path, wake: make(chan struct{}, 1), done: make(chan struct{})}, nil
}

// enqueue queues a task. The ledger's goroutine calls the task, and later the
// function that the task returns.
func (l *ledger) enqueue(t task) {
	l.mu.Lock()
	l.queue = append(l.queue, t)
	l.mu.Unlock()
	l.notify()
}

func (l *ledger) notify() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run calls the queued tasks, in a goroutine of its own. So a file that hangs
// delays nothing else.
func (l *ledger) run() {
	defer close(l.done)
	var failedAt time.Time
	for range l.wake {
		for {
			l.mu.Lock()
			n := min(len(l.queue), ledgerBatch)
			batch := l.queue[:n:n]
			l.queue = l.queue[n:]
			closed := l.closed
			l.mu.Unlock()
			if n == 0 && closed {
				return
			}
			if n == 0 {
				break
			}
			if err := l.processBatch(batch, failedAt); err != nil {
				failedAt = time.Now()
			}
		}
	}
}

// processBatch calls the tasks of one batch, and then Commit once for all of
// them. If the file failed less than ledgerPause ago, processBatch does not use
// the file. It passes an error to the tasks instead.
func (l *ledger) processBatch(batch []task, failedAt time.Time) error {
	if time.Since(failedAt) < ledgerPause {
		for _, t := range batch {
			t(errLedger)(errLedger)
		}
		return nil
	}
	l.dirty, l.writeErr = false, nil
	err := l.store.Begin()
	callbacks := make([]func(error), len(batch))
	for i, t := range batch {
		callbacks[i] = t(err)
	}
	if err == nil {
		err = l.store.Commit()
	}
	commitErr := err
	if n := l.store.Damaged(); n > l.damaged {
		slog.Error("claims in the idempotency file damaged; their keys are free", "path", l.path, "claims", n)
		l.damaged = n
	}
	if err = errors.Join(err, l.writeErr); err != nil || l.dirty {
		l.logHealth(err)
	}
	for _, callback := range callbacks {
		callback(commitErr)
	}
	return commitErr
}

var errLedger = errors.New("the idempotency file could not be used a moment ago")

// noteWrite records that the current batch has written to the file. err is the
// error of the write, or nil.
func (l *ledger) noteWrite(err error) {
	l.dirty = true
	if l.writeErr == nil {
		l.writeErr = err
	}
}

// logHealth logs when the file becomes unusable, and when it can be used again.
func (l *ledger) logHealth(err error) {
	l.mu.Lock()
	wasFailing := l.failing
	l.failing = err != nil
	l.mu.Unlock()
	switch {
	case err != nil && !wasFailing:
		l.counts.failures.add(1)
		slog.Error("idempotency file not usable; submissions with an Idempotency-Key are refused", "path", l.path, "error", err)
	case err == nil && wasFailing:
		slog.Warn("idempotency file usable again", "path", l.path)
	}
}

// recordEnd queues a record of the final state of a claim, and tries again
// until the record is written. If done is not nil, recordEnd calls it after the
// first attempt, whether or not the attempt succeeds.
func (l *ledger) recordEnd(number uint64, state keystate.State, answer []byte, done func()) {
	l.countEnds(1)
	l.tryRecordEnd(number, state, answer, done)
}

func (l *ledger) tryRecordEnd(number uint64, state keystate.State, answer []byte, done func()) {
	l.enqueue(func(endErr error) func(error) {
		if endErr == nil {
			endErr = l.store.Settle(number, state, answer)
			l.noteWrite(endErr)
		}
		return func(error) { // a failed sync is ignored: only a crash of the machine could still lose the record
			if endErr != nil {
				time.AfterFunc(ledgerPause, func() { l.tryRecordEnd(number, state, answer, nil) })
			} else {
				l.countEnds(-1)
			}
			if done != nil {
				done()
			}
		}
	})
}

// countEnds adds n to the number of final states that are not recorded yet.
func (l *ledger) countEnds(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends += n
}

// close lets the queued tasks finish. It returns when the queue is empty, or
// when the time limit has expired.
func (l *ledger) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.notify()
	select {
	case <-l.done:
	case <-time.After(writeLimit):
	}
	l.mu.Lock()
	lost := l.ends
	l.mu.Unlock()
	if lost > 0 {
		slog.Error("idempotency file not usable; outcomes of submissions are lost and count as unknown", "path", l.path, "claims", lost)
	}
}
