package worker

import (
	"context"
	"sync/atomic"
	"time"

	"schedrestd/errs"
)

// seat is what one request has of them, and whose it turned out to be.
type seat struct {
	gate *gate
	who  string
	is   atomic.Pointer[string] // the same, for others than its handler
	gone bool                   // it was given back before the end
}

type seatKey struct{}

var (
	errRate  = errs.New(errs.TooMany, "more requests than one user may send in this time")
	errShare = errs.New(errs.TooMany, "as many requests of this user as may be while others wait are being answered, and none came to its end in time")
)

// admit is for handlers.Config: it lets in a request of who, whose credential is good, as far as he asks neither too
// often nor too much at one time.
func admit(ctx context.Context, who string) error {
	p, ok := ctx.Value(seatKey{}).(*seat)
	if !ok || p.who != "" {
		return nil // of a page that needs no room, or of a test
	}
	if wait := p.gate.rates.take(time.Now(), who); wait > 0 {
		p.gate.server.counts.limited.Add(1)
		return late(errRate, wait)
	}
	if !p.gate.seats.claim(ctx, who, func() { p.gate.hurry(nil) }) {
		p.gone = true
		p.gate.server.counts.share.Add(1)
		return late(errShare, retrySoon)
	}
	p.who = who
	p.is.Store(&who)
	return nil
}

// retrySoon is when one is asked to come back who found no seat.
const retrySoon = 2 * time.Second

// crowds tells whether whose it is has more seats than he should have while others wait.
func (p *seat) crowds() bool {
	who := p.is.Load()
	return who != nil && p.gate.seats.crowds(*who)
}

func (p *seat) leave() {
	if !p.gone {
		p.gate.seats.leave(p.who)
	}
}
