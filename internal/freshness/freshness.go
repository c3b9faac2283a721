// Package freshness carries in a context how old the data in an answer may be.
package freshness

import (
	"context"
	"sync"
	"time"
)

// A Limit says how old the data in an answer may be. It also records how old the
// data was. A Limit is safe for concurrent use. A nil *Limit stands for data that
// is not older than the request.
type Limit struct {
	Accept time.Duration // maximum age of the data when the request arrives
	Keep   time.Duration // how long to keep the data for later requests that accept it

	mu     sync.Mutex
	oldest time.Duration
}

type key struct{}

// With returns a context that carries l.
func With(ctx context.Context, l *Limit) context.Context { return context.WithValue(ctx, key{}, l) }

// From returns the Limit in ctx, or nil.
func From(ctx context.Context) *Limit {
	l, _ := ctx.Value(key{}).(*Limit)
	return l
}

// Accepts reports whether the data may have the given age.
func (l *Limit) Accepts(age time.Duration) bool { return l != nil && age <= l.Accept && l.Accept > 0 }

// KeepFor returns how long to keep the data.
func (l *Limit) KeepFor() time.Duration {
	if l == nil {
		return 0
	}
	return l.Keep
}

// Used records that data of this age was used.
func (l *Limit) Used(age time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.oldest = max(l.oldest, age)
}

// Age returns the age of the oldest data that was used; 0 if all data is as new
// as the request.
func (l *Limit) Age() time.Duration {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.oldest
}
