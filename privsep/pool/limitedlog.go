package pool

import (
	"time"

	"schedrestd/rate"
)

// limitedCount counts something that clients or users can cause as often as they like. The lines about
// it are limited, so that nobody fills the disk; the count is exact.
type limitedCount struct {
	n     uint64
	lines *rate.Bucket
}

func newLimitedCount() *limitedCount { return &limitedCount{lines: rate.New(50, 5, time.Now())} }

// add counts one more, and reports whether a line may be logged about it.
func (l *limitedCount) add() (n uint64, ok bool) {
	l.n++
	return l.n, l.lines.Take(time.Now(), 1)
}
