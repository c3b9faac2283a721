package client

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/internal/limit"
)

// enterAll lets n requests enter l, and returns their leave functions. It fails
// the test if a request has to wait.
func enterAll(t *testing.T, l burstLimit, n int) (leave []func()) {
	t.Helper()
	start := time.Now()
	for range n {
		f, err := l.enter(t.Context(), ann)
		if err != nil {
			t.Fatal(err)
		}
		leave = append(leave, f)
	}
	if waited := time.Since(start); waited > 0 {
		t.Fatalf("%d requests waited for %s", n, waited)
	}
	return leave
}

// Two credentials.
var ann, bob = "ann", "bob"

// TestBurst checks that requests beyond the limit wait until others are
// answered. The requests of one credential must be sent in the order of their
// arrival, and must not delay one of another credential.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBurstLimit()
		leave := enterAll(t, l, limit.Bursts.Total)
		var entered []int
		for i, o := range []string{ann, ann, bob} {
			go func() {
				if _, err := l.enter(t.Context(), o); err != nil {
					t.Error(err)
				}
				entered = append(entered, i)
			}()
			synctest.Wait()
		}
		for i := range 3 {
			if want := []int{2, 0, 1}[:i]; !slices.Equal(entered, want) {
				t.Errorf("after %d answers the requests %d were sent, not %d", i, entered, want)
			}
			leave[i]()
			synctest.Wait()
		}
		if !slices.Equal(entered, []int{2, 0, 1}) {
			t.Errorf("after 3 answers the requests %d were sent", entered)
		}
	})
}

// TestBurstOfSlowRequests checks that an unanswered request delays others only
// for a short time, and that its late answer does not free a second slot.
func TestBurstOfSlowRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBurstLimit()
		slow := enterAll(t, l, limit.Bursts.Total)
		start := time.Now()
		if _, err := l.enter(t.Context(), ann); err != nil || time.Since(start) != burstTime {
			t.Fatalf("request %d waited for %s: %v", limit.Bursts.Total+1, time.Since(start), err)
		}
		for _, leave := range slow {
			leave()
		}
		enterAll(t, l, limit.Bursts.Total-1)
		if n, _ := l.Counts(); n != limit.Bursts.Total {
			t.Errorf("%d requests count, not %d", n, limit.Bursts.Total)
		}
	})
}

// TestBurstWaitEnds checks that a request whose context ends while it waits
// gets an error, and does not count towards the limit.
func TestBurstWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBurstLimit()
		leave := enterAll(t, l, limit.Bursts.Total)
		cause := errors.New("the client is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if _, err := l.enter(ctx, ann); err != cause {
			t.Errorf("error %v", err)
		}
		for _, f := range leave {
			f()
		}
		enterAll(t, l, limit.Bursts.Total)
	})
}
