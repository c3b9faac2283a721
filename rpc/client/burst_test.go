package client

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// enterAll lets n requests enter l, and returns their leave functions. It fails
// the test if a request has to wait.
func enterAll(t *testing.T, l burstLimit, n int) (leave []func()) {
	t.Helper()
	start := time.Now()
	for range n {
		f, err := l.enter(t.Context())
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

// TestBurst checks that requests beyond the limit wait, in the order of their
// arrival, until others are answered.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBurstLimit()
		leave := enterAll(t, l, burst)
		var entered []int
		for i := range 3 {
			go func() {
				if _, err := l.enter(t.Context()); err != nil {
					t.Error(err)
				}
				entered = append(entered, i)
			}()
			synctest.Wait()
		}
		for i := range 3 {
			if want := []int{0, 1, 2}[:i]; !slices.Equal(entered, want) {
				t.Errorf("after %d answers the requests %d were sent, not %d", i, entered, want)
			}
			leave[i]()
			synctest.Wait()
		}
		if !slices.Equal(entered, []int{0, 1, 2}) {
			t.Errorf("after 3 answers the requests %d were sent", entered)
		}
	})
}

// TestBurstOfSlowRequests checks that an unanswered request delays others only
// for a short time, and that its late answer does not free a second slot.
func TestBurstOfSlowRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBurstLimit()
		slow := enterAll(t, l, burst)
		start := time.Now()
		if _, err := l.enter(t.Context()); err != nil || time.Since(start) != burstTime {
			t.Fatalf("request %d waited for %s: %v", burst+1, time.Since(start), err)
		}
		for _, leave := range slow {
			leave()
		}
		enterAll(t, l, burst-1)
		if len(l) != burst {
			t.Errorf("%d requests count, not %d", len(l), burst)
		}
	})
}

// TestBurstWaitEnds checks that a request whose context ends while it waits
// gets an error, and does not count towards the limit.
func TestBurstWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newBurstLimit()
		leave := enterAll(t, l, burst)
		cause := errors.New("the client is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if _, err := l.enter(ctx); err != cause {
			t.Errorf("error %v", err)
		}
		for _, f := range leave {
			f()
		}
		enterAll(t, l, burst)
	})
}
