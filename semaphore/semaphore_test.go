package semaphore

import (
	"context"
	"slices"
	"testing"
	"time"

	"schedrestd/errs"
)

// TestUsersTakeTurns: a user holds a few places, and those that wait get one in turns.
func TestUsersTakeTurns(t *testing.T) {
	s, ctx := New(3, 2, time.Hour), context.Background()
	acquire := func(uid uint32) func() {
		t.Helper()
		release, err := s.Acquire(ctx, uid)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	first, second := acquire(1), acquire(1)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Acquire(gone, 1); errs.KindOf(err) != errs.TooMany {
		t.Errorf("a third place for one user: %v", err)
	}
	other := acquire(2) // not kept out

	started := make(chan uint32)
	var releases [4]func()
	for i, uid := range []uint32{1, 1, 3, 4} {
		go func() {
			var err error
			if releases[i], err = s.Acquire(ctx, uid); err != nil {
				t.Error(err)
			}
			started <- uid
		}()
		for waiting := 0; waiting <= i; { // it waits now
			_, waiting = s.Counts()
		}
	}
	other()
	var order []uint32
	order = append(order, <-started)
	releases[2]()
	order = append(order, <-started)
	releases[3]()
	first()
	order = append(order, <-started)
	second()
	order = append(order, <-started)
	if want := []uint32{3, 4, 1, 1}; !slices.Equal(order, want) {
		t.Errorf("started in the order %v, want %v", order, want)
	}
	releases[0]()
	releases[1]()
	if s.taken != 0 || len(s.held) != 0 || len(s.waiting) != 0 {
		t.Errorf("left behind: %+v", s)
	}
}

// TestWaitEnds: a user that gets no place is refused after a while.
func TestWaitEnds(t *testing.T) {
	s := New(1, 1, time.Millisecond)
	release, err := s.Acquire(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(context.Background(), 2); errs.KindOf(err) != errs.TooMany {
		t.Errorf("got %v", err)
	}
	release()
	if taken, waiting := s.Counts(); taken != 0 || waiting != 0 {
		t.Errorf("%d taken, %d waiting", taken, waiting)
	}
}
