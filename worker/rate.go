package worker

import (
	"sync"
	"time"

	"schedrestd/ipc"
	"schedrestd/rate"
)

// rates is how often each identity asks.
type rates struct {
	burst, perSecond float64

	mu   sync.Mutex
	list map[string]*rate.Bucket
}

// mostIdentities is how many are remembered. Each has shown a credential that is good.
const mostIdentities = 10_000

// newRates is nil when everybody may ask as often as he likes.
func newRates(a ipc.Admission) *rates {
	if a.Rate == 0 {
		return nil
	}
	return &rates{burst: max(1, float64(a.Burst)), perSecond: float64(a.Rate), list: map[string]*rate.Bucket{}}
}

// take counts one request of who, or gives how long he has to wait.
func (r *rates) take(now time.Time, who string) time.Duration {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.list[who]
	if b == nil {
		if len(r.list) >= mostIdentities {
			r.forget(now)
		}
		b = rate.New(r.burst, r.perSecond, now)
		r.list[who] = b
	}
	if b.Take(now, 1) {
		return 0
	}
	return b.Wait(now, 1)
}

// len is how many identities are remembered.
func (r *rates) len() int {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list)
}

// forget looks at a few, and forgets those of them whose bucket is full by now, or else the one that has the most; r.mu is held.
func (r *rates) forget(now time.Time) {
	var fullest string
	most, looked := -1.0, 0
	for who, b := range r.list {
		if b.IsFull(now) {
			delete(r.list, who)
		} else if left := b.Left(now); left > most {
			fullest, most = who, left
		}
		if looked++; looked == 64 {
			break
		}
	}
	if len(r.list) >= mostIdentities {
		delete(r.list, fullest)
	}
}
