// Package rate provides a token bucket, which permits a burst of requests, and
// then a limited number of requests per second.
//
// It has no clock: callers provide the time. It neither decides what happens to
// requests over the limit nor counts them. Start with New for a single bucket,
// which has no lock, and with NewBuckets for a bucket for each user.
package rate

import (
	"math"
	"time"
)

// A Row describes a limit: what has a bucket, whose bucket it is, and what happens
// if it is empty. A bucket holds at most Burst tokens, and gains PerSecond tokens
// each second. Max limits the number of buckets in a Buckets. If All is not 0, all
// keys together have one more bucket, for All tokens, which fills in the same time
// (limit.Lines). All rows of this program are in the table of package limit.
type Row struct {
	Name, Process, Key, Setting, Refused, Shared, Metric string
	Burst, PerSecond, All                                float64
	Max                                                  int
}

// Of returns the row with other numbers.
func (r Row) Of(burst, perSecond float64) Row { r.Burst, r.PerSecond = burst, perSecond; return r }

// Bucket is a token bucket.
type Bucket struct {
	burst, perSecond float64
	tokens           float64 // number of tokens at filledAt; negative if tokens are owed
	filledAt         time.Time
}

// New returns a full bucket.
func New(row Row, now time.Time) *Bucket {
	return &Bucket{burst: row.Burst, perSecond: row.PerSecond, tokens: row.Burst, filledAt: now}
}

// Take takes n tokens and returns true. If the bucket has fewer than n tokens,
// Take takes none and returns false.
func (b *Bucket) Take(now time.Time, n float64) bool {
	if b.fill(now); b.tokens < n {
		return false
	}
	b.tokens -= n
	return true
}

// Delay returns the time until the bucket has n tokens. It takes no tokens.
func (b *Bucket) Delay(now time.Time, n float64) time.Duration {
	b.fill(now)
	return time.Duration(math.Ceil(max(0, n-b.tokens) * float64(time.Second) / b.perSecond))
}

// Charge takes n tokens even if the bucket has fewer. Missing tokens are owed.
// Charge returns the time until none are owed.
func (b *Bucket) Charge(now time.Time, n float64) time.Duration {
	b.fill(now)
	b.tokens -= n
	return b.Delay(now, 0)
}

func (b *Bucket) fill(now time.Time) {
	b.tokens = min(b.burst, b.tokens+b.perSecond*float64(now.Sub(b.filledAt))/float64(time.Second))
	b.filledAt = now
}
