// Package feed reads lists of the controller again and again while clients wait
// for changes, and finds out which records have changed.
//
// A feed reads one list for one credential, so it costs the controller as much
// as one client, whatever the number of clients that wait. A view of a feed is
// what clients with the same request see: the records that match its filter, as
// they are shown. A view remembers a hash of each of these records. So a change
// wakes only the clients that would see it.
//
// The goroutine of a feed makes one pass after another. In a pass it reads the
// list, and gives the records that have changed to each view. Views therefore
// need no locks of their own, except for what their clients read.
package feed

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/origin"
	"schedrestd/internal/semaphore"
	"schedrestd/model"
)

// A feed reads a Source.
type feed[R any] struct {
	set    *Set[R]
	key    feedKey
	place  *semaphore.Place[string] // among the feeds of its user
	source Source[R]
	wake   chan struct{} // has an element if a pass is wanted at once

	// The goroutine of the feed alone uses these fields.
	records map[string]record
	memory  Reservation       // for the records; a map keeps its memory when records are removed
	pass    uint32            // number of the current pass
	sum     [sha256.Size]byte // digest of what the last pass has read
	known   bool              // sum is set
	waited  time.Duration     // how long the current pass has waited for its turn
	differs bool              // the current pass has found a change
	passing []*View[R]        // the views that take part in the current pass
	whole   []*View[R]        // those of them that take all records, not only those that have changed

	// The lock of the set guards these fields.
	views   map[string]*View[R]
	changed time.Time // when the last change was found
}

// record is what a feed remembers of a record.
type record struct {
	digest uint64
	pass   uint32 // in which it was last seen
}

// requestPass makes the feed start its next pass without waiting for the interval.
func (f *feed[R]) requestPass() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// quiet is the time after which a list in which nothing changes is read half as
// often.
const quiet = 5 * time.Minute

// run makes passes until no view is left.
func (f *feed[R]) run() {
	defer f.set.Count.add(Readers, -1)
	defer func() { f.memory.Shrink(f.memory.Size()) }()
	asked := time.Time{} // when the controller was last asked
	failures := 0
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due := false
		select {
		case <-f.wake:
		case <-timer.C:
			due = true
		}
		if f.isAbandoned() {
			return
		}
		// A view that has just been added can begin with data that the last
		// pass has read, because its clients read the list after the pass.
		begun, again := time.Now(), !due && failures == 0 && !asked.IsZero()
		if !again {
			asked = begun
		}
		err := f.tryPass(asked, again)
		if err == errAbandoned {
			return
		}
		if err == nil {
			failures = 0
		} else {
			failures = min(failures+1, 5)
		}
		if err == nil && again {
			continue // the timer is still running
		}
		timer.Reset(time.Until(begun.Add(f.pause(time.Since(begun)-f.waited, failures))))
	}
}

// pause returns the time between the beginnings of two passes. A controller that
// answers slowly, or fails, is asked less often.
func (f *feed[R]) pause(took time.Duration, failures int) time.Duration {
	f.set.mu.Lock()
	still := time.Since(f.changed)
	f.set.mu.Unlock()
	pause := max(f.set.Interval, 3*took)
	if still > quiet {
		pause = max(pause, 2*f.set.Interval)
	}
	return min(pause<<failures, max(pause, 30*time.Second))
}

// isAbandoned removes the feed from its set if it has no views.
func (f *feed[R]) isAbandoned() bool {
	f.set.mu.Lock()
	defer f.set.mu.Unlock()
	for _, v := range f.views {
		if v.isAbandonedLocked() {
			v.endLocked(errAbandoned)
		}
	}
	if len(f.views) > 0 {
		return false
	}
	delete(f.set.feeds, f.key)
	f.place.Release()
	return true
}

// errAbandoned ends a view that has no clients, and a feed that has no views.
var errAbandoned = errs.New(errs.Internal, "no client waits")

// passTimeout limits a pass, whose requests have limits of their own.
const passTimeout = 5 * time.Minute

// tryPass makes a pass. A panic, for example in a function of an Interest, ends
// the views of the feed, and not the process with all its clients.
func (f *feed[R]) tryPass(asked time.Time, again bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("reading a list again panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errPanicked
			f.set.mu.Lock()
			defer f.set.mu.Unlock()
			for _, v := range f.views {
				v.endLocked(err)
			}
			f.known = false
		}
	}()
	return f.makePass(asked, again)
}

var errPanicked = errs.New(errs.Internal, "the list can't be read because of an error in the gateway")

// makePass reads the list, which is requested after the given time, and tells the
// views what has changed. If again is set, the last pass may have read it already.
func (f *feed[R]) makePass(asked time.Time, again bool) error {
	asks := time.Now()
	turn, err := f.set.Shares.turns.Acquire(context.Background(), f.key.owner.User)
	if err != nil {
		return err
	}
	defer turn.Release()
	f.waited = time.Since(asks)
	if f.isAbandoned() { // in the meantime
		return errAbandoned
	}
	ctx, cancel := context.WithTimeout(context.Background(), passTimeout)
	defer cancel()
	data := &origin.Origin{Keep: keep, Digest: true}
	clients := f.beginPass()
	switch {
	case again:
		data.After = asked
	case clients > 1:
		f.set.Count.add(Saved, clients-1)
	}
	first := true
	var digest uint64 // of the record
	_, err = f.source.Read(origin.With(ctx, data), model.Query{Undated: true, Digest: &digest}, func(r *R) error {
		if first && f.known && len(f.whole) == 0 {
			if sum, known := data.Sum(); known && sum == f.sum {
				return errSame
			}
		}
		first = false
		return f.readRecord(r, digest)
	})
	switch err {
	case errSame: // no record was read, and no view needed one
		err = nil
	case nil:
		f.sum, f.known = data.Sum()
		f.removeUnseen()
	default:
		f.known = false
	}
	f.endPass(asked, err)
	return err
}

// beginPass begins a pass. It returns the number of clients of the views.
func (f *feed[R]) beginPass() (clients int) {
	f.set.mu.Lock()
	defer f.set.mu.Unlock()
	f.pass++
	f.passing, f.whole, f.differs = f.passing[:0], f.whole[:0], false
	for _, v := range f.views {
		clients += v.users
		f.passing = append(f.passing, v)
		if v.beginPassLocked() {
			f.whole = append(f.whole, v)
		}
	}
	return clients
}

// keep is how long the client of the controller keeps what a pass has read.
const keep = time.Minute

// errSame ends a pass that reads what the last pass has read.
var errSame = errs.New(errs.Internal, "the list has not changed")

const (
	recordSize = 96  // memory for a record, with its key, in bytes
	recordStep = 256 // number of records for which memory is reserved at once; viewSize has room for the first ones
)

// readRecord gives a record to the views, if it has changed. It fails if there
// is no memory for another record.
func (f *feed[R]) readRecord(r *R, digest uint64) error {
	key := f.set.Key(r)
	old, existed := f.records[key]
	if n := len(f.records) + 1; !existed && n%recordStep == 0 {
		if more := n*recordSize - f.memory.Size(); more > 0 && !f.memory.Grow(more) {
			return errNoMemory
		}
	}
	f.records[key] = record{digest, f.pass}
	views := f.passing
	if existed && old.digest == digest {
		views = f.whole
	} else {
		f.differs = true
	}
	for _, v := range views {
		v.compareRecord(key, r)
	}
	return nil
}

// removeUnseen removes the records that a complete pass has not seen, because they
// no longer exist.
func (f *feed[R]) removeUnseen() {
	for key, remembered := range f.records {
		if remembered.pass == f.pass {
			continue
		}
		delete(f.records, key)
		f.differs = true
		for _, v := range f.passing {
			v.remove(key)
		}
	}
}

// endPass ends a pass.
func (f *feed[R]) endPass(asked time.Time, err error) {
	switch {
	case err != nil:
		f.set.Count.add(ReadFailed, 1)
	case f.differs:
		f.set.Count.add(ReadChanged, 1)
	default:
		f.set.Count.add(ReadUnchanged, 1)
	}
	f.set.mu.Lock()
	defer f.set.mu.Unlock()
	defer func() { clear(f.passing); clear(f.whole) }()
	pass := Change{Asked: asked, Found: time.Now()}
	for _, v := range f.passing {
		if v.commitLocked(pass, err) {
			f.changed = pass.Found
		}
	}
}
