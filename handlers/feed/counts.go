package feed

import "sync/atomic"

// Counts are the counts of all sets of feeds, for the metrics.
type Counts struct {
	readers atomic.Int64 // feeds
	views   atomic.Int64 // views that were created
}
