package limiter

import (
	"testing"
	"time"

	"schedrestd/internal/limit"
	"schedrestd/ipc/work"
)

// TestRates checks that a user can send as many requests at once as the bucket
// permits, and after that only as many per second as the rate permits.
func TestRates(t *testing.T) {
	r := newRates(work.Admission{Rate: 2, Burst: 3})
	now := time.Unix(1_700_000_000, 0)
	for i := range 3 {
		if wait := r.Take(now, "alice"); wait != 0 {
			t.Fatalf("request %d waits %s", i, wait)
		}
	}
	if wait := r.Take(now, "alice"); wait != 500*time.Millisecond {
		t.Errorf("the fourth waits %s", wait)
	}
	if wait := r.Take(now, "bob"); wait != 0 {
		t.Errorf("another user waits %s", wait)
	}
	if wait := r.Take(now.Add(500*time.Millisecond), "alice"); wait != 0 {
		t.Errorf("half a second later the first user waits %s", wait)
	}
	if r := newRates(work.Admission{}); r.Take(now, "alice") != 0 {
		t.Error("there is a limit that was not set")
	}
	for i := range 3 * limit.UserRequests.Max {
		r.Take(now.Add(time.Second), string(rune(i)))
	}
	if r.Len() > limit.UserRequests.Max {
		t.Errorf("%d are remembered", r.Len())
	}
}
