package feed

import (
	"context"
	"slices"
	"time"
)

// A Stream is a client that follows the changes of a view.
type Stream[R any] struct {
	view *View[R]
	next *batch // the changes that the client gets next; nil: it needs a snapshot first
	part int    // number of events of the next batch that the client has
}

// Follow returns a stream of the view's changes. If state identifies a state of
// the view that is still known, the stream begins with the changes after it, and
// resumed is true. Otherwise it begins with a snapshot. The caller must call
// Close.
func (v *View[R]) Follow(state string) (s *Stream[R], resumed bool) {
	v.feed.set.mu.Lock()
	defer v.feed.set.mu.Unlock()
	v.streams++
	s = &Stream[R]{view: v}
	if state == v.current.String() {
		s.next = v.next
		return s, true
	}
	for b := v.oldest; b != v.next; b = b.next {
		if b.State == state { // later changes may have led to the same state again
			s.next = b.next
		}
	}
	return s, s.next != nil
}

// Close ends the stream.
func (s *Stream[R]) Close() {
	s.view.feed.set.mu.Lock()
	defer s.view.feed.set.mu.Unlock()
	if s.view.streams--; s.view.streams == 0 {
		s.view.followed = time.Now()
	}
}

// Next waits for what the client does not have yet. It returns either a snapshot,
// which the caller must release, or changes. A batch that is continued by the next
// call has no State. A client that is too far behind for the changes gets a
// snapshot.
func (s *Stream[R]) Next(ctx context.Context) (*Snapshot, []Batch, error) {
	for {
		snapshot, changes, news, err := s.takeNews()
		if err != nil || snapshot != nil || len(changes) > 0 {
			return snapshot, changes, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// takeNews returns what the client does not have yet, if anything.
func (s *Stream[R]) takeNews() (*Snapshot, []Batch, <-chan struct{}, error) {
	v := s.view
	v.feed.set.mu.Lock()
	defer v.feed.set.mu.Unlock()
	if v.err != nil {
		return nil, nil, nil, v.err
	}
	if s.next != nil && s.next.dropped {
		s.next = nil
	}
	if s.next != nil {
		return nil, s.takeChanges(), v.news, nil
	}
	if v.snapshot == nil {
		if !v.wanted {
			v.wanted = true
			v.feed.requestPass()
		}
		return nil, nil, v.news, nil
	}
	if v.snapshot.full {
		v.dropSnapshotLocked()
		return nil, nil, nil, errNoMemory
	}
	snapshot := v.snapshot
	snapshot.users.Add(1)
	s.next, s.part = v.next, 0
	return snapshot, nil, v.news, nil
}

// maxTaken limits the changes that a client gets at a time, in bytes. A client may
// read them slowly for hours. No memory is reserved for them once the view has
// dropped them, and each client may have other ones.
const maxTaken = 32 << 10

// takeChanges returns the next changes. They do not keep the rest of their batch
// in memory.
func (s *Stream[R]) takeChanges() (list []Batch) {
	for size := 0; s.next.isOver() && size < maxTaken; {
		b, n := s.next, s.part
		for ; n < len(b.Events) && size < maxTaken; n++ {
			size += len(b.Events[n].Data) + eventSize
		}
		taken := Batch{Events: slices.Clone(b.Events[s.part:n])}
		if s.part = n; n == len(b.Events) {
			taken.State = b.State
			s.next, s.part = b.next, 0
		}
		list = append(list, taken)
	}
	return list
}

// Lag returns how long ago the controller was asked for the state that the view
// has. It is long if the controller does not answer, or if the feed waits for its
// turn. The view knows no change after that.
func (s *Stream[R]) Lag() time.Duration {
	s.view.feed.set.mu.Lock()
	defer s.view.feed.set.mu.Unlock()
	return time.Since(s.view.checked)
}

// Lost reports whether the stream continues with a snapshot.
func (s *Stream[R]) Lost() bool {
	s.view.feed.set.mu.Lock()
	defer s.view.feed.set.mu.Unlock()
	return s.next == nil
}
