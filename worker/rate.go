package worker

import (
	"math"
	"sync"
	"time"

	"schedrestd/ipc"
)

// bucket holds tokens, of which so many come in a second.
type bucket struct {
	left float64
	at   time.Time
}

// take takes one out, or gives how long it is until there is one.
func (b *bucket) take(now time.Time, rate, burst float64) time.Duration {
	b.left = min(burst, b.left+rate*now.Sub(b.at).Seconds())
	b.at = now
	if b.left >= 1 {
		b.left--
		return 0
	}
	return time.Duration(math.Ceil((1 - b.left) / rate * float64(time.Second)))
}

// rates is how often each identity asks.
type rates struct {
	rate, burst float64

	mu   sync.Mutex
	list map[string]*bucket
}

// mostIdentities is how many are remembered. Each has shown a credential that is good.
const mostIdentities = 10_000

// newRates is nil when everybody may ask as often as he likes.
func newRates(a ipc.Admission) *rates {
	if a.Rate == 0 {
		return nil
	}
	return &rates{rate: float64(a.Rate), burst: max(1, float64(a.Burst)), list: map[string]*bucket{}}
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
		b = &bucket{left: r.burst, at: now}
		r.list[who] = b
	}
	return b.take(now, r.rate, r.burst)
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

// forget forgets those whose bucket is full by now, or else one of a few that has the most; r.mu is held.
func (r *rates) forget(now time.Time) {
	var fullest string
	most, looked := -1.0, 0
	for who, b := range r.list {
		left := b.left + r.rate*now.Sub(b.at).Seconds()
		if left >= r.burst {
			delete(r.list, who)
		} else if left > most {
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
