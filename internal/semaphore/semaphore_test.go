package semaphore

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/internal/errs"
)

// TestUsersTakeTurns checks that each user can hold only a limited number of
// places, and that waiting users take turns.
func TestUsersTakeTurns(t *testing.T) {
	s, ctx := New[uint32](3, 2, time.Hour), context.Background()
	acquire := func(uid uint32) func() {
		t.Helper()
		place, err := s.Acquire(ctx, uid)
		if err != nil {
			t.Fatal(err)
		}
		return place.Release
	}
	first, second := acquire(1), acquire(1)
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Acquire(canceled, 1); errs.KindOf(err) != errs.TooMany {
		t.Errorf("a third place for one user: %v", err)
	}
	other := acquire(2) // user 2 is not delayed

	started := make(chan uint32)
	var releases [4]func()
	for i, uid := range []uint32{1, 1, 3, 4} {
		go func() {
			place, err := s.Acquire(ctx, uid)
			if err != nil {
				t.Error(err)
			}
			releases[i] = place.Release
			started <- uid
		}()
		for waiting := 0; waiting <= i; { // until the caller waits
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
	if s.inUse != 0 || len(s.heldBy) != 0 || len(s.waiters) != 0 {
		t.Errorf("left behind: %+v", s)
	}
}

// TestWaitEnds checks that Acquire returns an error if no place becomes free
// within the time limit.
func TestWaitEnds(t *testing.T) {
	s := New[uint32](1, 1, time.Millisecond)
	place, err := s.Acquire(context.Background(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(context.Background(), 2); errs.KindOf(err) != errs.TooMany {
		t.Errorf("got %v", err)
	}
	place.Release()
	if inUse, waiting := s.Counts(); inUse != 0 || waiting != 0 {
		t.Errorf("%d taken, %d waiting", inUse, waiting)
	}
}

// TestShareIsLent checks that a key can hold every place as long as no caller
// of another key waits, and only half of the places otherwise. A waiting caller
// must get its place as soon as places are free.
func TestShareIsLent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := NewLending[string](4, 2, time.Minute), context.Background()
		var mu sync.Mutex
		places := map[string][]*Place[string]{}
		started := func(key string) int {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return len(places[key])
		}
		var wg sync.WaitGroup
		acquire := func(key string) {
			wg.Go(func() {
				p, err := s.Acquire(ctx, "")
				if err == nil {
					err = p.Claim(ctx, key)
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				places[key] = append(places[key], p)
			})
			synctest.Wait()
		}
		release := func(key string) {
			p := places[key][0]
			places[key] = places[key][1:]
			p.Release()
			p.Release() // a second call has no effect
		}
		for range 14 {
			acquire("alice")
		}
		if n := started("alice"); n != 4 || !places["alice"][0].IsOverShare() {
			t.Fatalf("alice has %d places, although no other key waits", n)
		}
		acquire("bob")
		release("alice") // alice's ten waiting callers in turn get the place and lose it again in Claim, until bob's caller gets it
		if n := started("bob"); n != 1 {
			t.Fatalf("after one place was free bob has %d", n)
		}
		acquire("bob")
		release("alice")
		if n, m := started("bob"), started("alice"); n != 2 || m != 2 || places["alice"][0].IsOverShare() {
			t.Fatalf("after two places were free bob has %d, alice %d", n, m)
		}
		release("alice")
		if n := started("alice"); n != 2 {
			t.Fatalf("under its share alice has %d", n)
		}
		release("bob")
		release("bob")
		if n := started("alice"); n != 4 {
			t.Errorf("when bob has gone alice has %d", n)
		}
		for started("alice") > 0 {
			release("alice")
		}
		wg.Wait()
		if s.inUse != 0 || len(s.heldBy) != 0 || len(s.waiters) != 0 {
			t.Errorf("left behind: %+v", s)
		}
	})
}

// TestClaimInVain makes Claim and Acquire fail: no place becomes free in time,
// or the caller's context ends. The caller must then hold no place.
func TestClaimInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := NewLending[string](2, 1, time.Second), context.Background()
		acquire := func() *Place[string] {
			p, err := s.Acquire(ctx, "")
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		first, second := acquire(), acquire()
		if err := first.Claim(ctx, "alice"); err != nil {
			t.Fatal(err)
		}
		go s.Acquire(ctx, "") // another waiting caller
		synctest.Wait()
		if second.Claim(ctx, "alice") == nil {
			t.Error("alice has both places while another caller waits")
		}
		second.Release() // already released
		canceled, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := s.Acquire(canceled, ""); err == nil {
			t.Error("a caller that has gone got a place")
		}
		if s.inUse != 2 || s.heldBy["alice"] != 1 || len(s.waiters) != 0 {
			t.Errorf("taken %d, %v, %d wait", s.inUse, s.heldBy, len(s.waiters))
		}
	})
}
