package worker

import (
	"context"
	"testing"

	"schedrestd/gateway/worker/keys"
)

// TestReadiness checks that a worker is unready while it drains, or if it can't
// reach a controller that it needs.
func TestReadiness(t *testing.T) {
	defer draining.Store(false)
	k := keys.New()
	for _, tt := range []struct {
		drains, needed, up bool
		want               int
	}{{false, true, true, 0}, {false, true, false, 1}, {false, false, false, 0}, {true, true, true, 1}, {true, true, false, 2}} {
		draining.Store(tt.drains)
		reachable := func(context.Context) bool { return tt.up }
		if !tt.needed {
			reachable = nil
		}
		if got := readiness(k, reachable)(context.Background()); len(got) != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}
