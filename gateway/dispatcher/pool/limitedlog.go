package pool

import (
	"time"

	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
)

// A limitedCount counts events that clients or users can cause without limit.
// It limits only the log lines about these events, so that they can't fill the
// disk. The count itself is exact.
type limitedCount struct {
	n     uint64
	lines *rate.Bucket
}

func newLimitedCount() *limitedCount {
	return &limitedCount{lines: rate.New(limit.EventLines, time.Now())}
}

// add counts one more event, and reports whether a line about it may be logged.
func (l *limitedCount) add() (n uint64, ok bool) {
	l.n++
	return l.n, l.lines.Take(time.Now(), 1)
}
