package limiter

import (
	"context"
	"time"

	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc/work"
)

// newParked returns the semaphore that limits the requests that wait for a
// change, or follow changes. Half of them may be of one user.
func newParked(s *work.Setup) *semaphore.Semaphore[string] {
	n := max(1, int(s.Watching), int(s.Requests)/2)
	return semaphore.New[string](n, (n+1)/2, 0)
}

// A parkedRequest is a request that waits for a change. Its place among the
// requests in progress is free meanwhile.
type parkedRequest struct {
	*semaphore.Place[string]
	taken *place // among the requests in progress
	user  string
}

var errParked = errs.New(errs.TooMany, "server busy: too many requests wait for changes").
	WithHint("send the request without wait, or follow fewer lists")

// Park implements rest.Config.Park.
func Park(ctx context.Context, user string, stop func()) (rest.Parked, error) {
	one, ok := ctx.Value(placeKey{}).(*place)
	if !ok { // a test
		return nil, nil
	}
	waiting, err := one.limiter.parked.Acquire(ctx, user)
	if err != nil {
		one.limiter.Counts.WaitsRefused.Add(1)
		return nil, withRetryAfter(errParked, parkedRetryAfter)
	}
	one.request.Park(stop, false)
	one.Release()
	return &parkedRequest{waiting, one, user}, nil
}

// parkedRetryAfter is the Retry-After for a client that can't wait.
const parkedRetryAfter = 10 * time.Second

// Resume waits for a place among the requests in progress.
func (p *parkedRequest) Resume(ctx context.Context) error {
	p.Release()
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
func (p *parkedRequest) Leave() { p.Release() }

// ParkCall implements client.Config.Park. When the call goes on, its request
// takes a place even if none is free: there are only a few such calls, and if they
// had to wait for their places, the outcome of a change could get lost. For the
// same reason a change waits even if too many other requests do. Otherwise, the
// dispatcher would not know that it waits for the daemon, and if its client left,
// would replace this worker in the middle of the change.
func ParkCall(ctx context.Context, changing bool, stop func()) (resume func(), err error) {
	one, ok := ctx.Value(placeKey{}).(*place)
	if !ok || !one.claimed { // the credential is being verified, or it is a test
		return func() {}, nil
	}
	var waiting *semaphore.Place[string]
	if changing {
		waiting = one.limiter.parked.Force(one.user)
	} else if waiting, err = one.limiter.parked.Acquire(ctx, one.user); err != nil {
		one.limiter.Counts.WaitsRefused.Add(1)
		return nil, errCallsParked
	}
	one.request.Park(stop, true)
	one.Release()
	return func() {
		waiting.Release()
		one.Place = one.limiter.places.Force(one.user)
		one.request.Resume(one.Place)
	}, nil
}

var errCallsParked = errs.New(errs.Unavailable, "server busy: too many requests of this user wait")
