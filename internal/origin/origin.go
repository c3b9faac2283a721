// Package origin carries in a context which data of the controller an answer may
// contain, and which it contains.
package origin

import (
	"context"
	"crypto/sha256"
	"time"
)

// An Origin says how old the controller's data in an answer may be. It records
// how old the data was, and a digest of it. One request uses it, and asks for one
// list after the other, so an Origin has no lock. A nil *Origin stands for data that
// is not older than the request.
type Origin struct {
	After  time.Time     // data that was requested after this time is new enough; zero for no data that was requested earlier
	Keep   time.Duration // how long to keep the data for later requests that accept it
	Digest bool          // record a digest

	oldest  time.Duration
	digests []byte
	unknown bool // the digest of some data is not known
}

type key struct{}

// With returns a context that carries o.
func With(ctx context.Context, o *Origin) context.Context { return context.WithValue(ctx, key{}, o) }

// From returns the Origin in ctx, or nil.
func From(ctx context.Context) *Origin {
	o, _ := ctx.Value(key{}).(*Origin)
	return o
}

// Accepts reports whether the data may have been requested at the given time.
func (o *Origin) Accepts(asked time.Time) bool {
	return o != nil && !o.After.IsZero() && !asked.Before(o.After)
}

// KeepFor returns how long to keep the data.
func (o *Origin) KeepFor() time.Duration {
	if o == nil {
		return 0
	}
	return o.Keep
}

// Add records data of this age. If o asks for a digest, Add calls the function
// digest, which returns false if the digest is not known.
func (o *Origin) Add(age time.Duration, digest func() ([sha256.Size]byte, bool)) {
	if o == nil {
		return
	}
	var sum [sha256.Size]byte
	known := false
	if o.Digest {
		sum, known = digest()
	}
	o.oldest = max(o.oldest, age)
	o.digests = append(o.digests, sum[:]...)
	o.unknown = o.unknown || !known
}

// Age returns the age of the oldest data; 0 if all data is as new as the request.
func (o *Origin) Age() time.Duration {
	if o == nil {
		return 0
	}
	return o.oldest
}

// Sum returns a digest of all data. It returns false if there is no data yet, or
// if its digest is not known.
func (o *Origin) Sum() (sum [sha256.Size]byte, known bool) {
	if o == nil {
		return sum, false
	}
	if len(o.digests) == 0 || o.unknown {
		return sum, false
	}
	return sha256.Sum256(o.digests), true
}
