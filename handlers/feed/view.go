package feed

import (
	"context"
	"time"

	"schedrestd/internal/errs"
)

// An Interest is what some clients want to see of a list.
type Interest[R any] struct {
	Key      string                          // interests of a credential with the same key are the same
	Match    func(*R) bool                   // whether the clients see a record
	Render   func(to []byte, r *R) []byte    // appends a record, as the clients see it
	Gone     func(key string) (named []byte) // what names a record that they no longer see
	Reserve  func() Reservation              // for what the view remembers, and for a snapshot
	Snapshot bool                            // a client follows the view, so the first pass also makes a snapshot
}

// A Reservation is memory that is reserved for one purpose, out of a limit.
type Reservation interface {
	Grow(n int) bool // reserves n more bytes, or returns false
	Shrink(n int)    // frees n bytes, or all if there are fewer
	Size() int       // number of reserved bytes
}

// A View is the records of a list that some clients see. Its clients share it.
type View[R any] struct {
	Interest[R]
	feed *feed[R]

	// The goroutine of the feed alone uses these fields.
	shown     map[string]sum
	state     sum
	batch     []Event // changes in the current pass
	changes   int     // their number, also if they are not recorded
	building  *Snapshot
	recording bool // the current pass records changes as events
	size      int  // bytes in batch
	follows   bool // clients wanted events when the current pass began
	full      bool // there was no memory for a record
	buffer    []byte
	memory    Reservation

	// The lock of the set guards these fields.
	users    int
	left     time.Time     // when the last user left
	streams  int           // users that want events
	followed time.Time     // when the last of them left
	snapshot *Snapshot     // of the current state; nil for none
	wanted   bool          // the next pass makes a snapshot
	ready    chan struct{} // closed when the view has its first state, or has failed
	news     chan struct{} // closed at the next change, and replaced
	err      error         // why the view has failed
	current  sum           // the state after the last change
	last     Change        // the last change
	checked  time.Time     // when the controller was asked for the state
	passed   chan struct{} // closed at the end of the next pass; nil if no client waits for it
	oldest   *batch        // the first of the changes that are kept
	next     *batch        // the changes that are still to come
	logSize  int           // bytes in the changes that are kept
}

// Event is the change of a record.
type Event struct {
	Kind Kind
	Data []byte // the record as it is shown; for Removed, what names it
}

// Kind is the kind of an Event.
type Kind string

// The kinds of events.
const (
	Added   Kind = "added"
	Changed Kind = "changed"
	Removed Kind = "removed"
)

// Batch is the changes that one pass has found.
type Batch struct {
	Events []Event
	State  string // identifies the state of the view after the changes, in each worker
}

// A batch is a Batch in the list of those that a view keeps. Each reader of the
// list has the batch that it reads next. The view drops the oldest batches when
// they take too much memory, or all of them if changes were not recorded. A
// dropped batch holds no memory, and no other batch, however long a reader has it.
type batch struct {
	Batch
	size    int
	next    *batch // nil: the changes are still to come
	dropped bool
}

// isOver reports whether the changes are no longer to come.
func (b *batch) isOver() bool { return b.next != nil || b.dropped }

// The memory for recorded changes of a view is limited, in bytes: at least, and
// for each record of a long list. A client that is further behind begins again
// with a snapshot. For a long list, that is worth it only after many changes.
const (
	minLog    = 256 << 10
	recordLog = 64
)

func (v *View[R]) maxLog() int { return max(minLog, len(v.shown)*recordLog) }

// isNewLocked reports whether the view has no state yet.
func (v *View[R]) isNewLocked() bool {
	select {
	case <-v.ready:
		return false
	default:
		return true
	}
}

// linger is how long a view without clients goes on. A client that comes back
// meanwhile misses nothing.
const linger = 10 * time.Second

// isAbandonedLocked reports whether clients are no longer expected. A client
// that has left before the first state misses nothing when it comes back.
func (v *View[R]) isAbandonedLocked() bool {
	return v.users == 0 && (v.isNewLocked() || time.Since(v.left) >= linger)
}

// beginPassLocked prepares a pass. It returns whether the view needs all
// records.
func (v *View[R]) beginPassLocked() bool {
	v.follows = v.streams > 0 || time.Since(v.followed) < linger
	v.recording = v.follows && !v.isNewLocked()
	v.building = nil
	if v.wanted {
		v.building = newSnapshot(v.Reserve())
	}
	return v.wanted || v.isNewLocked()
}

// compareRecord compares a record with what the view remembers.
func (v *View[R]) compareRecord(key string, r *R) {
	if v.full {
		return
	}
	if !v.Match(r) {
		v.remove(key)
		return
	}
	v.buffer = v.Render(v.buffer[:0], r)
	now := hashRecord(key, v.buffer)
	old, existed := v.shown[key]
	if v.building != nil {
		v.building.add(v.buffer)
	}
	if existed && old == now {
		return
	}
	v.shown[key] = now
	v.state = v.state.minus(old).plus(now)
	kind := Changed
	if !existed {
		kind = Added
		v.full = len(v.shown)%holdInterval == 0 && !v.hold()
	}
	v.note(kind, v.buffer)
}

// remove removes a record if the view shows it.
func (v *View[R]) remove(key string) {
	old, existed := v.shown[key]
	if !existed {
		return
	}
	delete(v.shown, key)
	v.state = v.state.minus(old)
	if v.recording {
		v.note(Removed, v.Gone(key))
	} else {
		v.changes++
	}
}

// note records a change. If the changes are too many to be kept, it records none
// of them.
func (v *View[R]) note(kind Kind, data []byte) {
	v.changes++
	if !v.recording {
		return
	}
	if v.size += len(data) + eventSize; v.size > v.maxLog() {
		v.recording, v.batch = false, nil
		return
	}
	v.batch = append(v.batch, Event{kind, append([]byte(nil), data...)})
}

// eventSize is the memory for an Event without its data, in bytes.
const eventSize = 64

// commitLocked publishes what a pass has found. It reports whether something
// has changed.
func (v *View[R]) commitLocked(pass Change, err error) (changed bool) {
	first := v.isNewLocked()
	if v.full || err == nil && !v.hold() {
		err = errNoMemory
	}
	switch {
	case err != nil && (first || err == errNoMemory || errs.KindOf(err) == errs.Unauthenticated):
		v.endLocked(err)
		return false
	case first:
		v.last, v.current = pass, v.state
		close(v.ready)
	case v.changes > 0:
		v.publish(pass)
		changed = true
	}
	v.batch, v.changes, v.size = nil, 0, 0
	if v.building != nil {
		v.finishSnapshotLocked(err == nil)
	}
	if err == nil {
		v.checked = pass.Asked
	}
	v.wakePassedLocked()
	return changed
}

// wakeAllLocked wakes the clients that wait for a change or a snapshot.
func (v *View[R]) wakeAllLocked() {
	close(v.news)
	v.news = make(chan struct{})
}

// wakePassedLocked wakes the clients that wait for a pass.
func (v *View[R]) wakePassedLocked() {
	if v.passed != nil {
		close(v.passed)
		v.passed = nil
	}
}

// Refresh waits until the view has a state that the controller was asked for
// after the given time. It does not make the feed ask earlier than usual.
func (v *View[R]) Refresh(ctx context.Context, after time.Time) error {
	for {
		v.feed.set.mu.Lock()
		if v.err != nil || v.checked.After(after) {
			defer v.feed.set.mu.Unlock()
			return v.err
		}
		if v.passed == nil {
			v.passed = make(chan struct{})
		}
		passed := v.passed
		v.feed.set.mu.Unlock()
		select {
		case <-passed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// publish adds the changes of a pass to the log, and wakes the clients.
func (v *View[R]) publish(pass Change) {
	v.last, v.current = pass, v.state
	v.dropSnapshotLocked()
	limit := v.maxLog()
	if !v.recording {
		limit = -1 // no client can go on from the changes before these
	}
	now := v.next
	v.next = new(batch)
	now.Batch, now.size, now.next = Batch{v.batch, v.state.String()}, v.size, v.next
	for v.logSize += v.size; v.logSize > limit && v.oldest != v.next; {
		gone := v.oldest
		v.oldest = gone.next
		v.logSize -= gone.size
		*gone = batch{dropped: true}
	}
	v.wakeAllLocked()
}

const (
	viewSize     = 32 << 10 // memory for a view without records, in bytes
	entrySize    = 128      // memory for the hash of a record, with its key, in bytes
	holdInterval = 1 << 10  // number of records for which memory is reserved at once
)

// hold reserves the memory for what the view remembers.
func (v *View[R]) hold() bool {
	need := viewSize + len(v.shown)*entrySize
	if v.follows {
		need += v.maxLog()
	}
	return v.reserve(need)
}

// reserve changes the size of the reserved memory.
func (v *View[R]) reserve(need int) bool {
	more := need - v.memory.Size()
	if more <= 0 {
		v.memory.Shrink(-more)
		return true
	}
	return v.memory.Grow(more)
}

// endLocked ends the view, with an error for its clients.
func (v *View[R]) endLocked(err error) {
	if v.err != nil {
		return
	}
	v.err = err
	if v.isNewLocked() {
		close(v.ready)
	}
	delete(v.feed.views, v.Key)
	if v.building != nil {
		v.building.Release()
		v.building = nil
	}
	v.dropSnapshotLocked()
	v.memory.Shrink(v.memory.Size())
	v.oldest, v.shown = v.next, nil
	v.wakePassedLocked()
	v.wakeAllLocked()
}

// Leave ends a use of the view.
func (v *View[R]) Leave() {
	v.feed.set.mu.Lock()
	defer v.feed.set.mu.Unlock()
	if v.users--; v.users == 0 {
		v.left = time.Now()
	}
}

// Change is a position among the changes of a view: after one of them, or before
// the first.
type Change struct {
	Asked time.Time // what the Source reads contains the change, if it was requested after this time
	Found time.Time // any data contains the change that was requested after this time

	next *batch // the first changes after the position
}

// Now returns the position after the last change.
func (v *View[R]) Now() Change {
	v.feed.set.mu.Lock()
	defer v.feed.set.mu.Unlock()
	return v.position()
}

func (v *View[R]) position() Change {
	at := v.last
	at.next = v.next
	return at
}

// Wait waits for a change after the position, and returns the position after it.
func (v *View[R]) Wait(ctx context.Context, at Change) (Change, error) {
	for {
		v.feed.set.mu.Lock()
		now, news, err, changed := v.position(), v.news, v.err, at.next.isOver()
		v.feed.set.mu.Unlock()
		if err != nil || changed {
			return now, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return at, context.Cause(ctx)
		}
	}
}

// IsShared reports whether the view has several clients.
func (v *View[R]) IsShared() bool {
	v.feed.set.mu.Lock()
	defer v.feed.set.mu.Unlock()
	return v.users > 1
}

// Reads reports whether the view's feed reads this source.
func (v *View[R]) Reads(s *Source[R]) bool { return v.feed.source.Name == s.Name }
