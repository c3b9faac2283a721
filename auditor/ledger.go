package auditor

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"schedrestd/auditor/claims"
)

// ledger keeps the claims of Idempotency-Keys. One goroutine owns the file.
// Other goroutines put work into a queue that never blocks. docs/IDEMPOTENCY.md
// lists its guarantees.
type ledger struct {
	store  *claims.Store
	counts ledgerCounts
	wrote  bool  // something was written in this turn
	failed error // first error of a write in this turn

	mu    sync.Mutex
	queue []func(ready error) (after func(commit error)) // each runs between Begin and Commit; after runs when Commit has returned
	ill   bool                                           // the last batch failed
	over  bool
	wake  chan struct{} // signals that the queue has entries
	gone  chan struct{} // closed when the goroutine has returned
}

// ledgerCounts counts events since the start.
type ledgerCounts struct {
	claimed, replayed, refused, failed count
}

// ledgerPause is how long the ledger waits before it tries to use the file
// again after an error.
const ledgerPause = time.Second

// ledgerBatch is the maximum number of claims that share one sync.
const ledgerBatch = 256

func newLedger(file claims.File) (*ledger, error) {
	var by [8]byte
	if _, err := rand.Read(by[:]); err != nil {
		return nil, fmt.Errorf("create an id for this user of the idempotency file: %w", err)
	}
	now := func() time.Time { return time.Now().Round(0) } // the file has no monotonic clock
	return &ledger{store: claims.New(file, by, now), wake: make(chan struct{}, 1), gone: make(chan struct{})}, nil
}

// do queues a function that may use the file. The argument of this function is
// nil, or the reason why the file can't be used. Its result is a second
// function, which is called after the sync. The argument of the second function
// is the error of the sync. Both run in the ledger's goroutine.
func (l *ledger) do(use func(ready error) func(error)) {
	l.mu.Lock()
	l.queue = append(l.queue, use)
	l.mu.Unlock()
	l.poke()
}

func (l *ledger) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run processes the queue, in a goroutine of its own. A file that hangs delays
// only this goroutine.
func (l *ledger) run() {
	defer close(l.gone)
	var failed time.Time
	for range l.wake {
		for {
			l.mu.Lock()
			n := min(len(l.queue), ledgerBatch)
			batch := l.queue[:n:n]
			l.queue = l.queue[n:]
			over := l.over
			l.mu.Unlock()
			if n == 0 && over {
				return
			}
			if n == 0 {
				break
			}
			if err := l.turn(batch, failed); err != nil {
				failed = time.Now()
			}
		}
	}
}

// turn processes one batch. If the file failed less than ledgerPause ago, turn
// does not use it.
func (l *ledger) turn(batch []func(error) func(error), failed time.Time) error {
	if time.Since(failed) < ledgerPause {
		for _, use := range batch {
			use(errLedger)(errLedger)
		}
		return nil
	}
	l.wrote, l.failed = false, nil
	err := l.store.Begin()
	after := make([]func(error), len(batch))
	for i, use := range batch {
		after[i] = use(err)
	}
	if err == nil {
		err = l.store.Commit()
	}
	committed := err
	if err = errors.Join(err, l.failed); err != nil || l.wrote {
		l.sayHealth(err)
	}
	for _, tell := range after {
		tell(committed)
	}
	return committed
}

var errLedger = errors.New("the idempotency file could not be used a moment ago")

// note records that something was written to the file, and the error of the
// write, if any.
func (l *ledger) note(err error) {
	l.wrote = true
	if l.failed == nil {
		l.failed = err
	}
}

// sayHealth logs when the file becomes unusable, and when it can be used again.
func (l *ledger) sayHealth(err error) {
	l.mu.Lock()
	was := l.ill
	l.ill = err != nil
	l.mu.Unlock()
	switch {
	case err != nil && !was:
		l.counts.failed.add(1)
		slog.Error("idempotency file not usable; submissions with an Idempotency-Key are refused", "error", err)
	case err == nil && was:
		slog.Warn("idempotency file usable again")
	}
}

// close processes the rest of the queue. It returns when the queue is empty or
// its time limit is over.
func (l *ledger) close() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.poke()
	select {
	case <-l.gone:
	case <-time.After(writeLimit):
	}
}
