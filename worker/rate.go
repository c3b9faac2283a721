package worker

import (
	"sync"
	"time"

	"schedrestd/ipc/work"
	"schedrestd/rate"
)

// The type rates limits the request rate of each user.
type rates struct {
	burst, perSecond float64

	mu   sync.Mutex
	list map[string]*rate.Bucket
}

// maxIdentities limits the number of users who have a bucket. Only users who
// have sent a valid credential have one.
const maxIdentities = 10_000

// newRates returns the rate limits, or nil if there are none.
func newRates(a work.Admission) *rates {
	if a.Rate == 0 {
		return nil
	}
	return &rates{burst: max(1, float64(a.Burst)), perSecond: float64(a.Rate), list: map[string]*rate.Bucket{}}
}

// take counts a request of a user. It returns 0 if the request is within the
// limit. Otherwise it returns how long the user has to wait for the next
// request.
func (r *rates) take(now time.Time, user string) time.Duration {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.list[user]
	if b == nil {
		if len(r.list) >= maxIdentities {
			r.evict(now)
		}
		b = rate.New(r.burst, r.perSecond, now)
		r.list[user] = b
	}
	if b.Take(now, 1) {
		return 0
	}
	return b.Delay(now, 1)
}

// len returns the number of stored identities.
func (r *rates) len() int {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list)
}

// evict examines a few users, and removes those whose buckets are full. If no
// bucket is full, evict removes the examined user with the fullest one. The
// caller holds r.mu.
func (r *rates) evict(now time.Time) {
	var fullest string
	best, examined := -1.0, 0
	for user, b := range r.list {
		if b.IsFull(now) {
			delete(r.list, user)
		} else if left := b.Tokens(now); left > best {
			fullest, best = user, left
		}
		if examined++; examined == 64 {
			break
		}
	}
	if len(r.list) >= maxIdentities {
		delete(r.list, fullest)
	}
}
