package worker

import (
	"context"
	"time"

	"schedrestd/errs"
	"schedrestd/semaphore"
)

// places returns the limit of concurrent requests. A request takes a place
// before its user is known, and claims the place for the user afterwards. A
// user that has half of the places gets no more while other users wait.
func places(requests uint32, patience time.Duration) *semaphore.Semaphore[string] {
	n := int(requests)
	if n == 0 {
		n = 1 << 30 // no limit
	}
	return semaphore.NewLending[string](n, max(1, n/2), patience)
}

// inflight is the place of a request among the concurrent requests.
type inflight struct {
	*semaphore.Place[string]
	gate    *gate
	claimed bool
}

type inflightKey struct{}

var (
	errRate  = errs.New(errs.TooMany, "rate limit of this user exceeded")
	errShare = errs.New(errs.TooMany, "server busy: concurrency limit of this user reached")
)

// admit implements handlers.Config.Admit. It admits an authenticated request
// unless its user exceeds the rate limit or the concurrency limit.
func admit(ctx context.Context, user string) error {
	p, ok := ctx.Value(inflightKey{}).(*inflight)
	if !ok || p.claimed {
		return nil // a page that needs no place, or a test
	}
	if wait := p.gate.rates.take(time.Now(), user); wait > 0 {
		p.gate.server.counts.limited.Add(1)
		return late(errRate, wait)
	}
	soon := time.AfterFunc(crowding, func() { p.gate.shortenDeadlines(nil) })
	defer soon.Stop()
	if p.Claim(ctx, user) != nil {
		p.gate.server.counts.share.Add(1)
		return late(errShare, retrySoon)
	}
	p.claimed = true
	return nil
}

// retrySoon is the Retry-After for a client that got no place.
const retrySoon = 2 * time.Second
