package limiter

import (
	"context"
	"time"

	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/semaphore"
)

// A parkedRequest is a request that waits for a change. Its place among the
// requests in progress is free meanwhile.
type parkedRequest struct {
	waiting *semaphore.Place[string]
	user    string
	taken   *place // among the requests in progress
}

var errParked = errs.New(errs.TooMany, "server busy: too many requests wait for changes").
	WithHint("send the request without wait, or follow fewer lists")

// Park implements rest.Worker.Park.
func Park(ctx context.Context, user string, stop func()) (rest.Parked, error) {
	held, ok := ctx.Value(placeKey{}).(*place)
	if !ok { // a test
		return rest.NoWorker{}.Park(ctx, user, stop)
	}
	waiting := held.limiter.parked.Displace(user, stop)
	if waiting == nil {
		held.limiter.Counts.WaitsRefused.Add(1)
		return nil, &rest.RetryAfterError{Err: errParked, After: parkedRetryAfter}
	}
	held.request.Park(stop, false)
	held.Release()
	return &parkedRequest{waiting, user, held}, nil
}

// parkedRetryAfter is the Retry-After for a client that can't wait.
const parkedRetryAfter = 10 * time.Second

// Resume waits for a place among the requests in progress.
func (p *parkedRequest) Resume(ctx context.Context) error {
	p.waiting.Release()
	again, err := p.taken.limiter.places.Acquire(ctx, p.user)
	if err != nil {
		p.taken.limiter.Counts.Overloaded.Add(1)
		return errOverloaded
	}
	p.taken.Place = again
	p.taken.request.Resume(again)
	return nil
}

// Leave ends the wait.
func (p *parkedRequest) Leave() { p.waiting.Release() }

// ParkCall implements client.Config.Park. When the call goes on, its request
// takes a place even if none is free: there are only a few such calls, and if they
// had to wait for their places, the outcome of a change could get lost. For the
// same reason a change waits even if too many other requests do. Otherwise, the
// dispatcher would not know that it waits for the daemon, and if its client left,
// would replace this worker in the middle of the change.
func ParkCall(ctx context.Context, changing bool, stop func()) (resume func(), err error) {
	held, ok := ctx.Value(placeKey{}).(*place)
	if !ok || !held.claimed { // the credential is being verified, or it is a test
		return func() {}, nil
	}
	var waiting *semaphore.Place[string]
	if changing {
		waiting = held.limiter.parked.Force(held.user)
	} else if waiting = held.limiter.parked.Displace(held.user, stop); waiting == nil {
		held.limiter.Counts.WaitsRefused.Add(1)
		return nil, errCallsParked
	}
	held.request.Park(stop, true)
	held.Release()
	return func() {
		waiting.Release()
		held.Place = held.limiter.places.Force(held.user)
		held.request.Resume(held.Place)
	}, nil
}

var errCallsParked = errs.New(errs.Unavailable, "server busy: too many requests of this user wait")
