package semaphore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/internal/errs"
)

// TestUsersTakeTurns checks that each user can hold only a limited number of
// places, and that waiting users take turns.
func TestUsersTakeTurns(t *testing.T) {
	s, ctx := New[uint32](Row{Total: 3, Share: 2, Wait: time.Hour}), context.Background()
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
	if _, err := s.Acquire(canceled, 1); err != context.Canceled {
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
	if s.queue.Free() != s.row.Total || s.queue.Keys() != 0 || s.queue.Len() != 0 {
		t.Errorf("left behind: %+v", s)
	}
}

// TestWaitEnds checks that Acquire returns an error if no place becomes free
// within the time limit.
func TestWaitEnds(t *testing.T) {
	s := New[uint32](Row{Total: 1, Share: 1, Wait: time.Millisecond})
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

// TestHold checks that a place is released when it has been held for the time of
// the row, and that its holder does not release another one later.
func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, start := New[string](Row{Total: 2, Hold: 5 * time.Millisecond, Wait: Forever}), time.Now()
		var places [4]*Place[string]
		for i := range places {
			var err error
			if places[i], err = s.Acquire(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			if waited := time.Since(start); waited != time.Duration(i/2)*5*time.Millisecond {
				t.Errorf("place %d after %s", i, waited)
			}
		}
		places[0].Release()
		places[1].Release()
		if n, _ := s.Counts(); n != 2 {
			t.Errorf("%d places are held, not 2", n)
		}
		places[2].Release()
		time.Sleep(5 * time.Millisecond)
		synctest.Wait()
		if n, _ := s.Counts(); n != 0 {
			t.Errorf("%d places are held at the end", n)
		}
		cause := errors.New("the client is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		for range 2 {
			s.Acquire(ctx, "a")
		}
		cancel(cause)
		if _, err := s.Acquire(ctx, "b"); err != cause {
			t.Errorf("error %v", err)
		}
	})
}

// TestShareIsLent checks that a key can hold every place as long as no caller
// of another key waits, and only half of the places otherwise. A waiting caller
// must get its place as soon as places are free.
func TestShareIsLent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := New[string](Row{Total: 4, Share: 2, Lends: true, Wait: time.Minute}), context.Background()
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
			mu.Lock()
			p := places[key][0]
			places[key] = places[key][1:]
			mu.Unlock()
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
		if s.queue.Free() != s.row.Total || s.queue.Keys() != 0 || s.queue.Len() != 0 {
			t.Errorf("left behind: %+v", s)
		}
	})
}

// TestClaimInVain makes Claim and Acquire fail: no place becomes free in time,
// or the caller's context ends. The caller must then hold no place.
func TestClaimInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := New[string](Row{Total: 2, Share: 1, Lends: true, Wait: time.Second}), context.Background()
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
		if s.queue.Free() != 0 || s.queue.Held("alice") != 1 || s.queue.Len() != 0 {
			t.Errorf("taken %d, %v, %d wait", 2-s.queue.Free(), s.queue.Held("alice"), s.queue.Len())
		}
	})
}

// TestGrow checks how many places one Place can hold. The letters in a step name
// a key, and the number is what its Place grows or shrinks by.
func TestGrow(t *testing.T) {
	for _, tt := range []struct {
		name  string
		sem   *Semaphore[string]
		steps string // for each step: Place, number, spare places
		want  string // whether each step succeeds, and if not, which limit is the reason
	}{
		{"up to the share", New[string](Row{Total: 100, Share: 40}), "a 30 0, a 20 0, a 10 0, b 40 0, c 30 0, c 20 0", "yes share yes yes full yes"},
		{"two of one key", New[string](Row{Total: 100, Share: 40}), "a1 30 0, a2 20 0, a2 10 0", "yes share yes"},
		{"an only one may exceed a lent share", New[string](Row{Total: 100, Share: 40, Lends: true}), "a1 70 0, a2 1 0, b1 20 0, a1 -40 0, a2 10 0, a2 1 0, a1 1 0", "yes share yes yes yes share share"},
		{"some are kept free", New[string](Row{Total: 100, Share: 100}), "a 80 20, b 1 20, b 1 0", "yes full yes"},
	} {
		places := map[string]*Place[string]{}
		var got []string
		for step := range strings.SplitSeq(tt.steps, ", ") {
			var name string
			var n, spare int
			fmt.Sscan(step, &name, &n, &spare)
			if places[name] == nil {
				places[name] = tt.sem.Empty(name[:1])
			}
			ok, overShare := true, false
			if n < 0 {
				places[name].Shrink(-n)
			} else {
				ok, overShare = places[name].GrowLeaving(spare, n)
			}
			got = append(got, map[[2]bool]string{{true, false}: "yes", {false, true}: "share", {false, false}: "full"}[[2]bool{ok, overShare}])
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		for _, p := range places {
			p.Release()
		}
		if tt.sem.queue.Free() != 100 || tt.sem.queue.Keys() != 0 {
			t.Errorf("%s: left behind: %+v", tt.name, tt.sem.queue)
		}
	}
	s := New[string](Row{Total: 100, Share: 40})
	p := s.Empty("a")
	p.Grow(30)
	if p.Shrink(20); p.Size() != 10 || s.Held("a") != 10 || s.queue.Free() != 90 {
		t.Errorf("the key holds %d, the Place %d", s.Held("a"), p.Size())
	}
	if p.Shrink(20); p.Size() != 0 || s.queue.Free() != 100 {
		t.Errorf("%d places are free after more were released than were held", s.queue.Free())
	}
}

// TestCounts checks that the callers that wait and those that get no place are
// counted, and no others.
func TestCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		row := Row{Total: 1, Wait: time.Second, Counts: &Counts{Label: "test"}}
		s, ctx := New[string](row), t.Context()
		p, err := s.Acquire(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Acquire(ctx, "b"); err == nil {
			t.Error("there are two places")
		}
		time.AfterFunc(time.Millisecond, p.Release)
		if _, err := s.Acquire(ctx, "b"); err != nil {
			t.Error(err)
		}
		if waited, refused := row.Counts.Waited.Load(), row.Counts.Refused.Load(); waited != 2 || refused != 1 {
			t.Errorf("%d waited, and %d got no place; want 2 and 1", waited, refused)
		}
	})
}

// TestDisplace checks which caller loses its place if another one needs it, and
// that nothing is left of a place that was displaced, kept or released.
func TestDisplace(t *testing.T) {
	for _, tt := range []struct {
		name  string
		row   Row
		steps string // the key for each step, in capitals if its place is then kept
		want  string // for each step: a dash, the number of the step whose place it gets, or "no"
	}{
		{"the key with the most loses its oldest", Row{Total: 4, Share: 3}, "a a a b c c c", "- - - - 0 1 4"},
		{"kept places stay", Row{Total: 3, Share: 3}, "A a a b B b b", "- - - 1 2 3 5"},
		{"own ones at the share", Row{Total: 4, Share: 2}, "a a a b b a b", "- - 0 - - 1 3"},
		{"all are kept", Row{Total: 2, Share: 1}, "A A B B", "- no - no"},
		{"keys with equally many", Row{Total: 2, Share: 1}, "a b c d", "- - 0 1"},
		{"only a key with two more loses one", Row{Total: 4, Share: 3, Lead: 2}, "a a a a b b b c c", "- - - no - 0 no 1 no"},
		{"the same for keys with equally many", Row{Total: 2, Share: 1, Lead: 2}, "a b c", "- - no"},
	} {
		tt.row.Displaces = true
		s, places, displaced := New[string](tt.row), []*Place[string]{}, ""
		var got []string
		for i, key := range strings.Fields(tt.steps) {
			displaced = "-"
			p := s.Displace(strings.ToLower(key), func() { displaced = fmt.Sprint(i) })
			if places = append(places, p); p == nil {
				displaced = "no"
			} else if key == strings.ToUpper(key) {
				p.Keep()
			}
			got = append(got, displaced)
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		for i, p := range places {
			if p == nil {
				continue
			}
			if i%2 == 0 {
				p.Keep()
				p.Offer()
			}
			p.Release()
			p.Release()
		}
		if s.queue.Free() != tt.row.Total || s.queue.Keys() != 0 || s.queue.Len() != 0 {
			t.Errorf("%s: left behind: %+v", tt.name, s.queue)
		}
	}
}
