package limiter

import (
	"context"
	"time"

	"schedrestd/gateway/worker/conns"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/semaphore"
)

// A place is a request's place among those in progress.
type place struct {
	*semaphore.Place[string]
	limiter *Limiter
	request *conns.Request
	claimed bool
	excused bool
	user    string // if claimed
}

// Release releases the place that the request has now. This is another one than
// at the beginning if the request has waited for a change.
func (p *place) Release() { p.Place.Release() }

// placeKey is the context key of a request's place.
type placeKey struct{}

var (
	errRate  = errs.New(errs.TooMany, "rate limit of this user exceeded")
	errShare = errs.New(errs.TooMany, "server busy: concurrency limit of this user reached")
)

// Admit implements rest.Worker.Admit. It admits an authenticated request
// unless its user exceeds the rate limit or the concurrency limit.
func Admit(ctx context.Context, user string) error {
	p, ok := ctx.Value(placeKey{}).(*place)
	if !ok || p.claimed {
		return nil // a page that needs no place, a request that is already admitted, or a test
	}
	if wait := p.limiter.rates.Take(time.Now(), user, 1); wait > 0 {
		p.limiter.Counts.Limited.Add(1)
		return &rest.RetryAfterError{Err: errRate, After: wait}
	}
	if p.Claim(ctx, user) != nil {
		p.limiter.Counts.Share.Add(1)
		return &rest.RetryAfterError{Err: errShare, After: shareRetryAfter}
	}
	p.claimed, p.user = true, user
	return nil
}

// Excuse makes an answer 401 to the request cause no penalty. It is for a request
// with a genuine token: people who have an account at a portal, but none in the
// cluster or another uid there, must not get the portal blocked.
func Excuse(ctx context.Context) {
	if p, ok := ctx.Value(placeKey{}).(*place); ok {
		p.excused = true
	}
}

// shareRetryAfter is the Retry-After for a client whose user has reached the
// concurrency limit.
const shareRetryAfter = 2 * time.Second
