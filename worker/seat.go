package worker

import (
	"context"
	"time"

	"schedrestd/errs"
	"schedrestd/semaphore"
)

// places returns the places for requests that are being answered. A request
// takes one before its user is known, and claims it for the user then: nobody
// keeps more than half of them while others wait.
func places(requests uint32, patience time.Duration) *semaphore.Semaphore[string] {
	n := int(requests)
	if n == 0 {
		n = 1 << 30 // no limit
	}
	return semaphore.NewLending[string](n, max(1, n/2), patience)
}

// seat is the place of one request.
type seat struct {
	*semaphore.Place[string]
	gate    *gate
	claimed bool
}

type seatKey struct{}

var (
	errRate  = errs.New(errs.TooMany, "rate limit of this user exceeded")
	errShare = errs.New(errs.TooMany, "server busy: concurrency limit of this user reached")
)

// admit is for handlers.Config: it admits a request of a user whose credential
// is good, unless the user asks too often or for too much at a time.
func admit(ctx context.Context, user string) error {
	p, ok := ctx.Value(seatKey{}).(*seat)
	if !ok || p.claimed {
		return nil // of a page that needs no place, or of a test
	}
	if wait := p.gate.rates.take(time.Now(), user); wait > 0 {
		p.gate.server.counts.limited.Add(1)
		return late(errRate, wait)
	}
	soon := time.AfterFunc(crowding, func() { p.gate.hurry(nil) })
	defer soon.Stop()
	if p.Claim(ctx, user) != nil {
		p.gate.server.counts.share.Add(1)
		return late(errShare, retrySoon)
	}
	p.claimed = true
	return nil
}

// retrySoon is when a client that found no place is asked to come back.
const retrySoon = 2 * time.Second
