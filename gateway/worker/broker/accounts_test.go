package broker

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
)

// TestAccount checks how long a worker remembers who exists, and that a user that
// was known stays known while the user database is unavailable.
func TestAccount(t *testing.T) {
	now := time.Unix(1000, 0)
	var lookups int
	var exists map[string]bool
	var failure error
	a := newAccounts(func(_ context.Context, name, _ string) (uint32, error) {
		lookups++
		switch {
		case failure != nil:
			return 0, failure
		case exists[name]:
			return 1000, nil
		}
		return 0, errs.New(errs.NotFound, "none")
	})
	a.now = func() time.Time { return now }
	exists = map[string]bool{"alice": true}
	down := errs.New(errs.Unavailable, "down")
	for n, step := range []struct {
		after   time.Duration
		exists  map[string]bool
		failure error
		name    string
		kind    errs.Kind // of the error
		found   bool
		lookups int // so far
	}{
		{name: "alice", found: true, lookups: 1},
		{name: "alice", found: true, lookups: 1},
		{name: "carol", kind: errs.NotFound, lookups: 2},
		{name: "carol", kind: errs.NotFound, lookups: 2},
		{after: unknownTTL, exists: map[string]bool{"alice": true, "carol": true}, name: "carol", found: true, lookups: 3},
		{after: accountTTL, failure: down, name: "alice", found: true, lookups: 4},
		{failure: down, name: "alice", found: true, lookups: 4},
		{failure: down, name: "bob", kind: errs.Unavailable, lookups: 5},
		{after: accountAge, failure: down, name: "alice", kind: errs.Unavailable, lookups: 6},
		{name: "alice", found: true, lookups: 7},
		{after: accountTTL, exists: map[string]bool{}, name: "alice", kind: errs.NotFound, lookups: 8},
		{failure: down, name: "alice", kind: errs.NotFound, lookups: 8},
		{after: unknownTTL, failure: down, name: "alice", kind: errs.Unavailable, lookups: 9},
	} {
		now, failure = now.Add(step.after), step.failure
		if step.exists != nil {
			exists = step.exists
		}
		uid, err := a.find(context.Background(), step.name, "turn")
		if (uid == 1000) != step.found || (err == nil) != step.found || err != nil && errs.KindOf(err) != step.kind || lookups != step.lookups {
			t.Errorf("step %d: %s: %d, %v after %d look-ups", n+1, step.name, uid, err, lookups)
		}
	}
}

// TestAccountTurns floods the look-ups with made-up names from one client. Another
// client must get its answer after one look-up of the flood, and known users must
// not be forgotten. The client of the flood must be refused when too many of its
// look-ups are pending.
func TestAccountTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = 100 * time.Millisecond
		places := newResolver().places
		a := newAccounts(func(ctx context.Context, name, turn string) (uint32, error) {
			place, err := places.Acquire(ctx, turn)
			if err != nil {
				return 0, err
			}
			defer place.Release()
			time.Sleep(took)
			if name == "alice" || name == "bob" {
				return 1000, nil
			}
			return 0, errs.New(errs.NotFound, "none")
		})
		if _, err := a.find(t.Context(), "bob", "portal"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(accountTTL)
		var wg sync.WaitGroup
		var refused int
		var mu sync.Mutex
		for i := range 1000 {
			wg.Go(func() {
				if _, err := a.find(t.Context(), fmt.Sprint("made-up-", i), "portal"); errs.KindOf(err) == errs.TooMany {
					mu.Lock()
					defer mu.Unlock()
					refused++
				}
			})
		}
		synctest.Wait()
		if refused != 1000-limit.AccountSearches.Share {
			t.Errorf("%d look-ups were refused", refused)
		}
		if uid, err := a.find(t.Context(), "bob", "portal"); uid != 1000 || err != nil {
			t.Errorf("a known user behind the same portal: %d, %v", uid, err)
		}
		began := time.Now()
		if uid, err := a.find(t.Context(), "alice", "alice"); uid != 1000 || err != nil || time.Since(began) > 2*took {
			t.Errorf("another client: %d, %v after %s", uid, err, time.Since(began))
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.find(gone, "erna", "erna"); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("a client that has gone: %v", err)
		}
		wg.Wait()
		synctest.Wait()
		if pending, _ := a.pending.Counts(); len(a.searches)+pending > 0 {
			t.Errorf("%d look-ups are pending, and count as %d", len(a.searches), pending)
		}
	})
}
