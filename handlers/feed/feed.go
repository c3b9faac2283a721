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
	"sync"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/origin"
)

// A Source is a list of records of the type R.
type Source[R any] struct {
	Name  string // sources of a credential with the same name read the same records
	Whole bool   // it contains the records of the other sources of the Set

	// Read calls each for every record, with a hash of everything that is known
	// about it. The record is valid only during the call. Read adds what it has
	// read to the origin.Origin in ctx.
	Read func(ctx context.Context, each func(r *R, digest uint64) error) error
}

// A Set is the feeds for one type of records. Its fields are set before its
// first use.
type Set[R any] struct {
	Key      func(*R) string // the key of a record, which no other record has at the same time
	Interval time.Duration   // minimum time between two requests of a feed
	Count    Counter         // counts for the metrics; may be nil

	// Turn has an element for each feed that reads its list at present. Its
	// capacity bounds the processors that all sets use that share it, and the
	// requests for long lists that others have to wait for, however many users
	// wait for changes.
	Turn chan struct{}

	mu    sync.Mutex
	feeds map[feedKey]*feed[R]
}

// feedKey identifies a feed.
type feedKey struct{ owner, source string }

// maxNarrow is the number of feeds of one credential that read a part of a list.
// More of them would cost the controller more than one feed that reads it all.
const maxNarrow = 4

// A feed reads a Source.
type feed[R any] struct {
	set    *Set[R]
	key    feedKey
	source Source[R]
	wake   chan struct{} // has an element if a pass is wanted at once

	// The goroutine of the feed alone uses these fields.
	records map[string]record
	pass    uint32            // number of the current pass
	sum     [sha256.Size]byte // digest of what the last pass has read
	known   bool              // sum is set
	waited  time.Duration     // how long the current pass has waited for its turn
	differs bool              // the current pass has found a change
	passing []*View[R]        // the views that take part in the current pass
	whole   []*View[R]        // those of them that take all records, not only those that have changed

	mu      sync.Mutex // guards the fields below
	views   map[string]*View[R]
	changed time.Time // when the last change was found
}

// record is what a feed remembers of a record.
type record struct {
	digest uint64
	pass   uint32 // in which it was last seen
}

// Join returns the view for an interest in the records of a source. The argument
// owner identifies the credential with which the sources read. Join uses the
// first of the sources, or the last one, which is whole, if other clients read it
// already, or if the credential has many feeds. When Join returns, the view has
// the state of the controller at some time after the call or before it, and
// finds out about every change after that. The caller must call Leave.
func (s *Set[R]) Join(ctx context.Context, owner string, i Interest[R], sources ...Source[R]) (*View[R], error) {
	return s.join(ctx, owner, i, false, sources)
}

// JoinStream does the same as Join for a client that follows the view. If the view
// is new, its first pass also makes the snapshot.
func (s *Set[R]) JoinStream(ctx context.Context, owner string, i Interest[R], sources ...Source[R]) (*View[R], error) {
	return s.join(ctx, owner, i, true, sources)
}

// JoinExisting returns the view for the interest with this key in the records of a
// source, if other clients use it already, and nil otherwise. The caller must call
// Leave.
func (s *Set[R]) JoinExisting(owner, key string, source *Source[R]) *View[R] {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feeds[feedKey{owner, source.Name}]
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	v := f.views[key]
	if v == nil || v.users == 0 || v.isNew() || v.err != nil {
		return nil
	}
	v.users++
	return v
}

func (s *Set[R]) join(ctx context.Context, owner string, i Interest[R], snapshot bool, sources []Source[R]) (*View[R], error) {
	s.mu.Lock()
	f := s.choose(owner, sources)
	f.mu.Lock()
	v := f.views[i.Key]
	if v == nil {
		v = &View[R]{Interest: i, feed: f, ready: make(chan struct{}), news: make(chan struct{}), shown: map[string]sum{}, wanted: snapshot}
		if !v.reserve(viewSize) { // otherwise clients that do not wait for the first pass could add views without end
			f.mu.Unlock()
			s.mu.Unlock()
			return nil, errNoMemory
		}
		f.views[i.Key] = v
		f.requestPass()
	}
	v.users++
	f.mu.Unlock()
	s.mu.Unlock()
	select {
	case <-v.ready:
		f.mu.Lock()
		err := v.err
		f.mu.Unlock()
		if err != nil {
			v.Leave()
			return nil, err
		}
		return v, nil
	case <-ctx.Done():
		v.Leave()
		return nil, errs.Wrap(context.Cause(ctx), errs.Timeout, "the controller does not answer in time")
	}
}

// choose returns the feed for one of the sources. The caller holds s.mu.
func (s *Set[R]) choose(owner string, sources []Source[R]) *feed[R] {
	narrow := 0
	for key := range s.feeds {
		if key.owner == owner && !s.feeds[key].source.Whole {
			narrow++
		}
	}
	last := len(sources) - 1
	source := sources[0]
	f := s.feeds[feedKey{owner, source.Name}]
	if f == nil && !source.Whole && (narrow >= maxNarrow || s.feeds[feedKey{owner, sources[last].Name}] != nil) {
		source = sources[last]
		f = s.feeds[feedKey{owner, source.Name}]
	}
	if f != nil {
		return f
	}
	f = &feed[R]{set: s, key: feedKey{owner, source.Name}, source: source, wake: make(chan struct{}, 1),
		records: map[string]record{}, views: map[string]*View[R]{}, changed: time.Now()}
	if s.feeds == nil {
		s.feeds = map[feedKey]*feed[R]{}
	}
	s.feeds[f.key] = f
	s.Count.Add(Readers, 1)
	go f.run()
	return f
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
	defer f.set.Count.Add(Readers, -1)
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
		accept := time.Duration(0)
		if !due && failures == 0 && !asked.IsZero() {
			accept = time.Since(asked) + f.set.Interval/4 // more than the time until the data is looked for
		}
		begun := time.Now()
		if accept == 0 {
			asked = begun
		}
		err := f.tryPass(asked, accept)
		if err == nil {
			failures = 0
		} else {
			failures = min(failures+1, 5)
		}
		if !due && err == nil && accept > 0 {
			continue // the timer is still running
		}
		timer.Reset(time.Until(begun.Add(f.pause(time.Since(begun)-f.waited, failures))))
	}
}

// pause returns the time between the beginnings of two passes. A controller that
// answers slowly, or fails, is asked less often.
func (f *feed[R]) pause(took time.Duration, failures int) time.Duration {
	f.mu.Lock()
	still := time.Since(f.changed)
	f.mu.Unlock()
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
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range f.views {
		if v.isAbandoned() {
			v.end(errAbandoned)
		}
	}
	if len(f.views) > 0 {
		return false
	}
	delete(f.set.feeds, f.key)
	return true
}

// errAbandoned ends a view that has no clients.
var errAbandoned = errs.New(errs.Internal, "no client waits")

// passTimeout limits a pass, whose requests have limits of their own.
const passTimeout = 5 * time.Minute

// tryPass makes a pass. A panic, for example in a function of an Interest, ends
// the views of the feed, and not the process with all its clients.
func (f *feed[R]) tryPass(asked time.Time, accept time.Duration) (err error) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("reading a list again panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = errPanicked
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, v := range f.views {
				v.end(err)
			}
			f.known = false
		}
	}()
	return f.makePass(asked, accept)
}

var errPanicked = errs.New(errs.Internal, "the list can't be read because of an error in the gateway")

// makePass reads the list and tells the views what has changed. The list may have
// been requested at the given time already, which is accept ago.
func (f *feed[R]) makePass(asked time.Time, accept time.Duration) error {
	asks := time.Now()
	f.set.Turn <- struct{}{}
	defer func() { <-f.set.Turn }()
	f.waited = time.Since(asks)
	ctx, cancel := context.WithTimeout(context.Background(), passTimeout)
	defer cancel()
	data := &origin.Origin{Accept: accept, Keep: keep, Digest: true}
	clients := f.begin()
	if accept == 0 && clients > 1 {
		f.set.Count.Add(Saved, clients-1)
	}
	first := true
	err := f.source.Read(origin.With(ctx, data), func(r *R, digest uint64) error {
		if first && f.known && len(f.whole) == 0 {
			if sum, known := data.Sum(); known && sum == f.sum {
				return errSame
			}
		}
		first = false
		f.take(r, digest)
		return nil
	})
	if err == errSame {
		f.finish(asked, nil, false)
		return nil
	}
	if err == nil {
		f.sum, f.known = data.Sum()
	} else {
		f.known = false
	}
	f.finish(asked, err, err == nil)
	return err
}

// begin begins a pass. It returns the number of clients of the views.
func (f *feed[R]) begin() (clients int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pass++
	f.passing, f.whole, f.differs = f.passing[:0], f.whole[:0], false
	for _, v := range f.views {
		clients += v.users
		f.passing = append(f.passing, v)
		if v.begin() {
			f.whole = append(f.whole, v)
		}
	}
	return clients
}

// keep is how long the client of the controller keeps what a pass has read.
const keep = time.Minute

// errSame ends a pass that reads what the last pass has read.
var errSame = errs.New(errs.Internal, "the list has not changed")

// take gives a record to the views, if it has changed.
func (f *feed[R]) take(r *R, digest uint64) {
	key := f.set.Key(r)
	old, existed := f.records[key]
	f.records[key] = record{digest, f.pass}
	views := f.passing
	if existed && old.digest == digest {
		views = f.whole
	} else {
		f.differs = true
	}
	for _, v := range views {
		v.take(key, r)
	}
}

// finish ends a pass. If it is complete, records that it has not seen no longer
// exist.
func (f *feed[R]) finish(asked time.Time, err error, complete bool) {
	if complete {
		for key, one := range f.records {
			if one.pass == f.pass {
				continue
			}
			delete(f.records, key)
			f.differs = true
			for _, v := range f.passing {
				v.remove(key)
			}
		}
	}
	switch {
	case err != nil:
		f.set.Count.Add(ReadFailed, 1)
	case f.differs:
		f.set.Count.Add(ReadChanged, 1)
	default:
		f.set.Count.Add(ReadUnchanged, 1)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	defer func() { clear(f.passing); clear(f.whole) }()
	pass := Change{Asked: asked, Found: time.Now()}
	for _, v := range f.passing {
		if v.commit(pass, err, complete) {
			f.changed = pass.Found
		}
	}
}
