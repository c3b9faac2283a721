package worker

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func calm() {}

// TestShare: one identity has every seat while nobody else wants one, and half of them when somebody does; who waits
// for his turn is served as soon as the others have gone.
func TestShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newSeats(4, time.Minute), context.Background()
		seat := func(who string) bool { return s.enter(ctx, calm) && s.claim(ctx, who, calm) }
		for i := range 4 {
			if !seat("greedy") {
				t.Fatalf("seat %d is refused while nobody else is there", i)
			}
		}
		var mu sync.Mutex
		seated := map[string]int{}
		var wg sync.WaitGroup
		come := func(who string) {
			wg.Go(func() {
				ok := seat(who)
				mu.Lock()
				defer mu.Unlock()
				if ok {
					seated[who]++
				}
			})
		}
		for range 10 {
			come("greedy")
		}
		synctest.Wait()
		come("modest")
		synctest.Wait()
		leave := func(who string) { s.leave(who); synctest.Wait() }
		leave("greedy") // one of ten comes in, has three already, and makes way for the next, and so on to modest
		if seated["modest"] != 1 {
			t.Fatalf("after one seat was free: %v", seated)
		}
		come("modest")
		synctest.Wait()
		leave("greedy")
		if seated["modest"] != 2 || seated["greedy"] != 0 {
			t.Fatalf("after two seats were free: %v", seated)
		}
		leave("greedy")
		if seated["greedy"] != 1 {
			t.Fatalf("under his half greedy is not served: %v", seated)
		}
		leave("modest")
		leave("modest")
		if seated["greedy"] != 3 {
			t.Errorf("when modest has gone: %v", seated)
		}
		for range 8 {
			leave("greedy")
		}
		wg.Wait()
		if seated["greedy"] != 10 {
			t.Errorf("in the end: %v", seated)
		}
		for s.taken > 0 {
			leave("greedy")
		}
		if len(s.inside)+len(s.parked)+len(s.nameless) != 0 {
			t.Errorf("left over: %v %v %v", s.inside, s.parked, s.nameless)
		}
	})
}

// TestNoTurn: who finds none in his time, or goes away, is not counted among those who have one.
func TestNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newSeats(2, time.Second), context.Background()
		for range 2 {
			s.enter(ctx, calm)
			s.claim(ctx, "greedy", calm)
		}
		s.leave("greedy")
		if !s.enter(ctx, calm) {
			t.Fatal("no seat")
		}
		go s.enter(ctx, calm) // somebody waits
		synctest.Wait()
		if s.claim(ctx, "greedy", calm) {
			t.Error("greedy has both seats while somebody waits")
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if s.enter(gone, calm) {
			t.Error("who has gone got a seat")
		}
		if s.taken != 2 || s.inside["greedy"] != 1 || len(s.parked) != 0 {
			t.Errorf("taken %d, %v, %v", s.taken, s.inside, s.parked)
		}
	})
}

// TestRates: as many at once as the bucket holds, and then as many as come in.
func TestRates(t *testing.T) {
	r := newRates(ipcRate(2, 3))
	now := time.Unix(1_700_000_000, 0)
	for i := range 3 {
		if wait := r.take(now, "alice"); wait != 0 {
			t.Fatalf("request %d waits %s", i, wait)
		}
	}
	if wait := r.take(now, "alice"); wait != 500*time.Millisecond {
		t.Errorf("the fourth waits %s", wait)
	}
	if wait := r.take(now, "bob"); wait != 0 {
		t.Errorf("somebody else waits %s", wait)
	}
	if wait := r.take(now.Add(500*time.Millisecond), "alice"); wait != 0 {
		t.Errorf("half a second later she waits %s", wait)
	}
	if r := newRates(ipcRate(0, 0)); r.take(now, "alice") != 0 {
		t.Error("there is a limit that nobody set")
	}
	for i := range 3 * mostIdentities {
		r.take(now.Add(time.Second), string(rune(i)))
	}
	if len(r.list) > mostIdentities {
		t.Errorf("%d are remembered", len(r.list))
	}
}
