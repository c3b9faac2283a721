package rate_test

import (
	"testing"
	"time"

	"schedrestd/internal/rate"
)

// TestTake checks that the rate applies after a burst, and that each call takes
// all of its tokens or none. A long pause must permit only one burst.
func TestTake(t *testing.T) {
	begun := time.Unix(1_700_000_000, 0)
	b := rate.New(rate.Row{Burst: 3, PerSecond: 2}, begun)
	for _, step := range []struct {
		ms   int
		n    float64
		want bool
	}{
		{0, 1, true}, {0, 3, false}, {0, 2, true}, {0, 1, false},
		{100, 1, false}, {500, 1, true}, {600, 1, false}, {1500, 2, true},
		{3_600_000, 4, false}, {3_600_000, 3, true}, {3_600_000, 1, false},
	} {
		if got := b.Take(begun.Add(time.Duration(step.ms)*time.Millisecond), step.n); got != step.want {
			t.Errorf("%v at %d ms: %t, want %t", step.n, step.ms, got, step.want)
		}
	}
}

// TestWait checks that there are enough tokens after the time that Delay
// returns, and not earlier.
func TestWait(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, perSecond := range []float64{.1, 2, 3, 7, 1000, 12345} {
		b := rate.New(rate.Row{Burst: 3, PerSecond: perSecond}, now)
		if wait := b.Delay(now, 3); wait != 0 {
			t.Errorf("with %v a second and a full bucket, the wait is %s", perSecond, wait)
		}
		b.Take(now, 3)
		wait := b.Delay(now, 1)
		if wait <= 0 || b.Take(now.Add(wait-time.Duration(1e8/perSecond)), 1) || !b.Take(now.Add(wait), 1) {
			t.Errorf("with %v a second, the wait is %s", perSecond, wait)
		}
	}
}

// TestOwe checks the times that Charge returns. The bucket must be full only
// after the owed tokens have been refilled, too.
func TestOwe(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	b := rate.New(rate.Row{Burst: 3, PerSecond: 2}, now)
	for i, want := range []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond} {
		if got := b.Charge(now, 2); got != want {
			t.Errorf("call %d: the debt is paid in %s, want %s", i+1, got, want)
		}
	}
	if got := b.Delay(now, 3); got != 3*time.Second {
		t.Errorf("the bucket is full in %s", got)
	}
}
