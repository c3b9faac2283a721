package rate

import (
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

// Take takes a token from the bucket of key, and returns 0. If the bucket is
// empty, Take returns the time until it has a token.
func (b *Buckets[K]) Take(now time.Time, key K) time.Duration { return b.TakeN(now, key, 1) }

// TakeN takes n tokens, like Take. If the bucket has fewer, TakeN takes none.
func (b *Buckets[K]) TakeN(now time.Time, key K, n float64) time.Duration {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	bucket := b.list[key]
	if bucket == nil {
		if len(b.list) >= b.row.Max {
			b.evictLocked(now)
		}
		bucket = New(b.row, now)
		b.list[key] = bucket
	}
	if bucket.Take(now, n) {
		return 0
	}
	return bucket.Delay(now, n)
}

// Len returns the number of buckets.
func (b *Buckets[K]) Len() int { b.mu.Lock(); defer b.mu.Unlock(); return len(b.list) }

// evictLocked examines a few buckets, and removes those that are full. If none
// is full, evict removes the fullest of them.
func (b *Buckets[K]) evictLocked(now time.Time) {
	var fullest K
	best, examined := 0.0, 0
	for key, bucket := range b.list {
		if bucket.IsFull(now) {
			delete(b.list, key)
		} else if left := bucket.Tokens(now); examined == 0 || left > best {
			fullest, best = key, left
		}
		if examined++; examined == 64 {
			break
		}
	}
	if len(b.list) >= b.row.Max {
		delete(b.list, fullest)
	}
}
