package rate_test

import (
	"testing"
	"time"

	"schedrestd/internal/rate"
)

// TestBuckets checks that each key has a bucket of its own, and that the number
// of buckets is limited.
func TestBuckets(t *testing.T) {
	const max = 100
	b := rate.NewBuckets[int](rate.Row{Max: max, Burst: 3, PerSecond: 2})
	now := time.Unix(1_700_000_000, 0)
	for i := range 3 {
		if wait := b.Take(now, 1, 1); wait != 0 {
			t.Fatalf("call %d waits %s", i, wait)
		}
	}
	if wait := b.Take(now, 1, 1); wait != 500*time.Millisecond {
		t.Errorf("the fourth call waits %s", wait)
	}
	if wait := b.Take(now, 2, 1); wait != 0 {
		t.Errorf("another key waits %s", wait)
	}
	for i := range 3 * max {
		if wait := b.Take(now, 1000+i, 1); wait != 0 {
			t.Fatalf("new key %d waits %s", i, wait)
		}
	}
	if n := b.Len(); n > max {
		t.Errorf("there are %d buckets", n)
	}
	if wait := b.Charge(now, 1, 1); wait != 500*time.Millisecond {
		t.Errorf("the debt is paid in %s", wait)
	}
	for i := range max {
		b.Charge(now, -i, 10)
	}
	if b.Take(now, 5000, 1); b.Charge(now, 5000, 0) != 0 {
		t.Error("a new bucket displaces itself")
	}
	const day = 86_400 // a key that counts once a day, such as a rejected credential
	once := rate.NewBuckets[int](rate.Row{Max: max, Burst: 1, PerSecond: 1. / day})
	for i := range 1000 { // two alternate, and others come once
		for _, key := range []int{1, 2} {
			if once.Take(now, key, 1) == 0 != (i == 0) {
				t.Fatalf("round %d: wrong result for key %d", i, key)
			}
		}
		if i < max-10 && once.Take(now, 1000+i, 1) != 0 {
			t.Errorf("new key %d does not count", i)
		}
	}
	for i := range 100 * max {
		if once.Take(now, 10_000+i, 1) != 0 {
			t.Fatalf("new key %d does not count when there are too many", i)
		}
	}
	if n := once.Len(); n != max {
		t.Errorf("there are %d buckets", n)
	}
	var none *rate.Buckets[int]
	if wait := none.Take(now, 1, 1); wait != 0 {
		t.Errorf("without limits, a call waits %s", wait)
	}
}
