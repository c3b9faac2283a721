package feed

import (
	"context"
	"sync"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/model"
)

// A Source is a list of records of the type R.
type Source[R any] struct {
	Name  string // sources of a credential with the same name read the same records
	Whole bool   // it contains the records of the other sources of the Set

	// Read calls each for every record, which is valid only during the call. The
	// flags of the query and its user are those of the source. Read adds what it
	// has read to the origin.Origin in ctx.
	Read func(ctx context.Context, q model.Query, each func(*R) error) (model.ListTimes, error)
}

// A Set is the feeds for one type of records. Its fields are set before its
// first use.
type Set[R any] struct {
	Key      func(*R) string // the key of a record, which no other record has at the same time
	Interval time.Duration   // minimum time between two requests of a feed
	Limit    time.Duration   // how long Join waits for the first state of a view; 0 for no limit
	Count    Counter         // counts for the metrics; may be nil

	// Shares divides passes and feeds among users. Several sets have the same.
	Shares *Shares

	mu    sync.Mutex // guards feeds, and what their clients read
	feeds map[feedKey]*feed[R]
}

// feedKey identifies a feed.
type feedKey struct {
	owner  Owner
	source string
}

// An Owner says for whom a feed reads. Only clients with the same credential
// share a feed, but all feeds of a user share the user's turns.
type Owner struct {
	Credential string // identifies the credential with which the sources read
	User       string // whose credential it is, once it is verified
}

// maxNarrow is the number of feeds of one credential that read a part of a list.
// More of them would cost the controller more than one feed that reads it all.
const maxNarrow = 4

// Join returns the view for an interest in the records of a source. The argument
// owner identifies the credential with which the sources read. Join uses the
// first of the sources, or the last one, which is whole, if other clients read it
// already, or if the credential has many feeds. When Join returns, the view has
// the state of the controller at some time after the call or before it, and
// finds out about every change after that. The caller must call Leave.
func (s *Set[R]) Join(ctx context.Context, owner Owner, i Interest[R], sources ...Source[R]) (*View[R], error) {
	s.mu.Lock()
	f := s.chooseLocked(owner, i.Reserve, sources)
	if f == nil {
		s.mu.Unlock()
		return nil, errTooMany
	}
	v := f.views[i.Key]
	if v == nil {
		v = &View[R]{Interest: i, feed: f, memory: i.Reserve(), ready: make(chan struct{}), news: make(chan struct{}), shown: map[string]sum{}, wanted: i.Snapshot, next: new(batch)}
		v.oldest = v.next
		if !v.reserve(viewSize) { // otherwise clients that do not wait for the first pass could add views without end
			s.mu.Unlock()
			return nil, errNoMemory
		}
		f.views[i.Key] = v
		f.requestPass()
	}
	v.users++
	s.mu.Unlock()
	if s.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.Limit)
		defer cancel()
	}
	select {
	case <-v.ready:
		s.mu.Lock()
		err := v.err
		s.mu.Unlock()
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

// JoinExisting returns the view for the interest with this key in the records of a
// source, if other clients use it already, and nil otherwise. The caller must call
// Leave.
func (s *Set[R]) JoinExisting(owner Owner, key string, source *Source[R]) *View[R] {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.feeds[feedKey{owner, source.Name}]
	if f == nil {
		return nil
	}
	v := f.views[key]
	if v == nil || v.users == 0 || v.isNewLocked() || v.err != nil {
		return nil
	}
	v.users++
	return v
}

// chooseLocked returns the feed for one of the sources, or nil if there is none
// and the user can have no more feeds. A new feed gets its memory from the
// function reserve.
func (s *Set[R]) chooseLocked(owner Owner, reserve func() Reservation, sources []Source[R]) *feed[R] {
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
	place := s.Shares.feeds.Empty(owner.User)
	weight := 1
	if source.Whole {
		weight = limit.WholeList
	}
	if !place.Grow(weight) {
		return nil
	}
	f = &feed[R]{set: s, place: place, key: feedKey{owner, source.Name}, source: source, wake: make(chan struct{}, 1),
		records: map[string]record{}, memory: reserve(), views: map[string]*View[R]{}, changed: time.Now()}
	if s.feeds == nil {
		s.feeds = map[feedKey]*feed[R]{}
	}
	s.feeds[f.key] = f
	s.Count.add(Readers, 1)
	go f.run()
	return f
}
