// Package rate provides a token bucket, which permits a burst, and then a rate
// per second.
//
// It has no clock and no lock: callers must provide both. It neither decides
// what happens to requests over the limit nor counts them. Start with New.
package rate

import (
	"math"
	"time"
)

// Bucket is a token bucket.
type Bucket struct {
	burst, perSecond float64
	left             float64 // tokens at that time; negative if tokens are owed
	at               time.Time
}

// New returns a full bucket of burst tokens, which is refilled with perSecond
// tokens per second.
func New(burst, perSecond float64, now time.Time) *Bucket {
	return &Bucket{burst: burst, perSecond: perSecond, left: burst, at: now}
}

// Take takes n tokens and returns true. If the bucket has fewer than n tokens,
// Take takes none and returns false.
func (b *Bucket) Take(now time.Time, n float64) bool {
	if b.fill(now); b.left < n {
		return false
	}
	b.left -= n
	return true
}

// Wait returns the time until the bucket has n tokens. It takes no tokens.
func (b *Bucket) Wait(now time.Time, n float64) time.Duration {
	b.fill(now)
	return time.Duration(math.Ceil(max(0, n-b.left) * float64(time.Second) / b.perSecond))
}

// Owe takes n tokens even if the bucket has fewer. It returns the time until no
// tokens are owed.
func (b *Bucket) Owe(now time.Time, n float64) time.Duration {
	b.fill(now)
	b.left -= n
	return b.Wait(now, 0)
}

// Left returns the number of tokens. It is negative if tokens are owed.
func (b *Bucket) Left(now time.Time) float64 {
	b.fill(now)
	return b.left
}

// IsFull reports whether the bucket is full, like a new one.
func (b *Bucket) IsFull(now time.Time) bool { return b.Left(now) >= b.burst }

func (b *Bucket) fill(now time.Time) {
	b.left = min(b.burst, b.left+b.perSecond*float64(now.Sub(b.at))/float64(time.Second))
	b.at = now
}
