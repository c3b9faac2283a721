package rate

import (
	"math"
	"sync"
	"time"
)

// Buckets holds a bucket for each key, such as a user. Its methods may be
// called concurrently. A nil Buckets limits nothing.
type Buckets[K comparable] struct {
	row Row

	mu   sync.Mutex // guards list, and the buckets in it
	list map[K]*Bucket
}

// NewBuckets returns a Buckets with at most row.Max buckets.
func NewBuckets[K comparable](row Row) *Buckets[K] {
	return &Buckets[K]{row: row, list: map[K]*Bucket{}}
}

// Take takes n tokens from the bucket of key, and returns 0. If the bucket has fewer,
// Take takes none, and returns the time until it has n.
func (b *Buckets[K]) Take(now time.Time, key K, n float64) time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	bucket := b.bucketLocked(now, key)
	if bucket.Take(now, n) {
		return 0
	}
	return bucket.Delay(now, n)
}

// Charge takes n tokens even if the bucket of key has fewer, like Bucket.Charge.
func (b *Buckets[K]) Charge(now time.Time, key K, n float64) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bucketLocked(now, key).Charge(now, n)
}

// Len returns the number of buckets.
func (b *Buckets[K]) Len() int { b.mu.Lock(); defer b.mu.Unlock(); return len(b.list) }

// bucketLocked returns the bucket of key. If there would be too many buckets, it
// removes the fullest of a few.
func (b *Buckets[K]) bucketLocked(now time.Time, key K) *Bucket {
	if bucket := b.list[key]; bucket != nil {
		return bucket
	}
	if len(b.list) >= b.row.Max {
		var fullest K
		most, examined := math.Inf(-1), 0
		for key, bucket := range b.list { // in an unpredictable order
			if bucket.fill(now); bucket.tokens > most {
				fullest, most = key, bucket.tokens
			}
			if examined++; examined == 64 {
				break
			}
		}
		delete(b.list, fullest)
	}
	bucket := New(b.row, now)
	b.list[key] = bucket
	return bucket
}
