package limiter

import (
	"schedrestd/internal/rate"
	"schedrestd/ipc/work"
)

// maxIdentities limits the number of users who have a bucket. Only users who
// have sent a valid credential have one.
const maxIdentities = 10_000

// newRates returns the limits on the request rates of users, or nil if there
// are none.
func newRates(a work.Admission) *rate.Buckets[string] {
	if a.Rate == 0 {
		return nil
	}
	return rate.NewBuckets[string](maxIdentities, max(1, float64(a.Burst)), float64(a.Rate))
}
