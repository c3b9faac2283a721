// Package rate is the token bucket: so many at once, and then so many a second.
//
// It asks no clock and takes no lock: who has a bucket brings both. What becomes of who asks for more than there is, and
// how many of them there were, is no business of it. The way in is New.
package rate

import (
	"math"
	"time"
)

// Bucket holds tokens.
type Bucket struct {
	burst, perSecond float64
	left             float64 // at that time; below zero what is owed
	at               time.Time
}

// New is a full bucket of burst tokens, of which perSecond come in.
func New(burst, perSecond float64, now time.Time) *Bucket {
	return &Bucket{burst: burst, perSecond: perSecond, left: burst, at: now}
}

// Take takes n tokens, or none when there are fewer.
func (b *Bucket) Take(now time.Time, n float64) bool {
	if b.fill(now); b.left < n {
		return false
	}
	b.left -= n
	return true
}

// Wait is how long it is until there are n tokens, of which it takes none.
func (b *Bucket) Wait(now time.Time, n float64) time.Duration {
	b.fill(now)
	return time.Duration(math.Ceil(max(0, n-b.left) * float64(time.Second) / b.perSecond))
}

// Owe takes n tokens whether they are there or not, and gives how long it is until all that was taken has come in.
func (b *Bucket) Owe(now time.Time, n float64) time.Duration {
	b.fill(now)
	b.left -= n
	return b.Wait(now, 0)
}

// Left is how many tokens there are, below zero how many are owed.
func (b *Bucket) Left(now time.Time) float64 {
	b.fill(now)
	return b.left
}

// IsFull tells whether nothing is taken of it any more: it is as good as a new one.
func (b *Bucket) IsFull(now time.Time) bool { return b.Left(now) >= b.burst }

func (b *Bucket) fill(now time.Time) {
	b.left = min(b.burst, b.left+b.perSecond*float64(now.Sub(b.at))/float64(time.Second))
	b.at = now
}
