package limit

import (
	"log/slog"
	"sync"
	"time"

	"schedrestd/internal/rate"
)

// Lines limits the log lines about each source, such as a user or a machine, and
// those about all sources together (rate.Row.All). A client can cause lines
// without limit, even without a token: they could fill the disk or hide other
// lines. Lines logs for each source how many were left out, as soon as a bucket
// that was empty then would be full again.
type Lines struct {
	row     rate.Row
	log     *slog.Logger
	sources *rate.Buckets[string]

	mu      sync.Mutex // guards the fields below
	all     *rate.Bucket
	omitted map[string]int // by source; at most row.Max and the others
	timer   *time.Timer    // calls Flush; nil before the first line that is left out
}

// otherSources stands for the sources that have no count of their own.
const otherSources = "others"

// NewLines returns the limits of a row. What was left out is logged to log.
func NewLines(row rate.Row, log *slog.Logger) *Lines {
	all := row.Of(row.All, row.All*row.PerSecond/row.Burst)
	return &Lines{row: row, log: log, sources: rate.NewBuckets[string](row), all: rate.New(all, time.Now()), omitted: map[string]int{}}
}

// Allow reports whether another line about a source may be written. If it
// returns false, it also counts the line.
func (l *Lines) Allow(source string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.sources.Take(now, source, 1) == 0 && l.all.Take(now, 1) {
		return true
	}
	if len(l.omitted) == 0 {
		l.timer = time.AfterFunc(l.period(), l.Flush)
	}
	if l.omitted[source] == 0 && len(l.omitted) >= l.row.Max {
		source = otherSources
	}
	l.omitted[source]++
	return false
}

// period returns the time in which an empty bucket fills.
func (l *Lines) period() time.Duration {
	return time.Duration(l.row.Burst / l.row.PerSecond * float64(time.Second)).Round(time.Millisecond)
}

// Flush logs how many lines were left out since the last time.
func (l *Lines) Flush() {
	l.mu.Lock()
	omitted := l.omitted
	l.omitted = map[string]int{}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	for source, n := range omitted {
		l.log.Warn("log lines left out", "lines", n, "period", l.period(), "source", source)
	}
}
