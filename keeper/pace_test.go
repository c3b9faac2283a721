package keeper

import (
	"testing"
	"time"
)

// TestPace: a burst is answered at once, what comes on top of it at its rate, and after a rest there is a burst again and no more.
func TestPace(t *testing.T) {
	var p pace
	now := time.Now()
	for i := range 5000 {
		if wait := p.take(now, signing); wait != 0 {
			t.Fatalf("question %d of a burst waits for %s", i, wait)
		}
	}
	for range 50 {
		if wait := p.take(now, signing); wait != signing {
			t.Fatalf("beyond the burst one waits for %s, want %s", wait, signing)
		}
		now = now.Add(signing)
	}
	now = now.Add(time.Hour)
	for i := range 25_000 {
		if wait := p.take(now, verifying); wait != 0 {
			t.Fatalf("question %d after a rest waits for %s", i, wait)
		}
	}
	if wait := p.take(now, verifying); wait == 0 {
		t.Error("an hour's rest counts for more than a burst")
	}
}
