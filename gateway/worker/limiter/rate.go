package limiter

import (
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc/work"
)

// newRates returns the limits on the request rates of users, or nil if there
// are none.
func newRates(a work.Admission) *rate.Buckets[string] {
	if a.Rate == 0 {
		return nil
	}
	return rate.NewBuckets[string](limit.UserRequests.Of(max(1, float64(a.Burst)), float64(a.Rate)))
}
