package limiter

import (
	"context"
	"sync"
	"time"

	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/ipc/work"
)

// A parking limits the requests that wait for a change, follow changes, or wait
// for an accounting daemon. Half of them may be of one user. If there are too many,
// a user with fewer takes the place of a request of the user with the most, which
// must then answer. Otherwise, two users could keep all others from waiting.
type parking struct {
	mu    sync.Mutex                              // guards queue and the field gone of its items
	queue *semaphore.Queue[string, *parkingPlace] // its items are the requests that can be stopped
}

// A parkingPlace is the place of a request in a parking.
type parkingPlace struct {
	parking *parking
	user    string
	stop    func()
	gone    bool // another request has it, or it was released
}

func newParking(s *work.Setup) *parking {
	row := limit.Parked.Of(max(1, int(s.Watching), int(s.Requests)/2))
	return &parking{queue: semaphore.NewQueue[string, *parkingPlace](row, nil)}
}

// acquire takes a place, or returns nil. It may call the function stop of another
// request, and later this one, to make it answer.
func (k *parking) acquire(user string, stop func()) *parkingPlace {
	k.mu.Lock()
	held := k.queue.Held(user)
	var displaced *parkingPlace
	if k.queue.Free() <= 0 {
		displaced, _ = k.queue.Most()
	}
	if k.queue.AtShare(user) || k.queue.Free() <= 0 && (displaced == nil || k.queue.Held(displaced.user) < held+2) {
		k.mu.Unlock()
		return nil
	}
	p := &parkingPlace{parking: k, user: user, stop: stop}
	if displaced != nil {
		k.removeLocked(displaced)
	}
	k.queue.Hold(user, 1)
	k.queue.Push(user, p)
	k.mu.Unlock()
	if displaced != nil {
		displaced.stop()
	}
	return p
}

// force takes a place even if none is free, for a request that can't be stopped.
func (k *parking) force(user string) *parkingPlace {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.queue.Hold(user, 1)
	return &parkingPlace{parking: k, user: user}
}

// removeLocked takes the place of p back.
func (k *parking) removeLocked(p *parkingPlace) {
	if !p.gone {
		p.gone = true
		k.queue.Remove(p.user, p)
		k.queue.Hold(p.user, -1)
	}
}

// count returns the number of places that are taken.
func (k *parking) count() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.queue.Used()
}

// release takes the place of p back.
func (p *parkingPlace) release() {
	p.parking.mu.Lock()
	defer p.parking.mu.Unlock()
	p.parking.removeLocked(p)
}

// A parkedRequest is a request that waits for a change. Its place among the
// requests in progress is free meanwhile.
type parkedRequest struct {
	*parkingPlace
	taken *place // among the requests in progress
}

var errParked = errs.New(errs.TooMany, "server busy: too many requests wait for changes").
	WithHint("send the request without wait, or follow fewer lists")

// Park implements rest.Worker.Park.
func Park(ctx context.Context, user string, stop func()) (rest.Parked, error) {
	held, ok := ctx.Value(placeKey{}).(*place)
	if !ok { // a test
		return rest.NoWorker{}.Park(ctx, user, stop)
	}
	waiting := held.limiter.parked.acquire(user, stop)
	if waiting == nil {
		held.limiter.Counts.WaitsRefused.Add(1)
		return nil, withRetryAfter(errParked, parkedRetryAfter)
	}
	held.request.Park(stop, false)
	held.Release()
	return &parkedRequest{waiting, held}, nil
}

// parkedRetryAfter is the Retry-After for a client that can't wait.
const parkedRetryAfter = 10 * time.Second

// Resume waits for a place among the requests in progress.
func (p *parkedRequest) Resume(ctx context.Context) error {
	p.release()
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
func (p *parkedRequest) Leave() { p.release() }

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
	var waiting *parkingPlace
	if changing {
		waiting = held.limiter.parked.force(held.user)
	} else if waiting = held.limiter.parked.acquire(held.user, stop); waiting == nil {
		held.limiter.Counts.WaitsRefused.Add(1)
		return nil, errCallsParked
	}
	held.request.Park(stop, true)
	held.Release()
	return func() {
		waiting.release()
		held.Place = held.limiter.places.Force(held.user)
		held.request.Resume(held.Place)
	}, nil
}

var errCallsParked = errs.New(errs.Unavailable, "server busy: too many requests of this user wait")
