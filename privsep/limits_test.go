package privsep

import (
	"testing"

	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
)

// TestParentRows checks that the parent's limits are those in the table of all
// limits, which the parent does not link.
func TestParentRows(t *testing.T) {
	for _, tt := range []struct{ parent, table rate.Row }{{arrivals, limit.ParentArrivals}, {restarts, limit.ParentRestarts}, {vouches, limit.ParentVouches}} {
		if p, row := tt.parent, tt.table; p.Burst != row.Burst || p.PerSecond != row.PerSecond || p.Max != row.Max {
			t.Errorf("%s: the parent's limit is %+v, but the table has %+v", row.Name, p, row)
		}
	}
}
