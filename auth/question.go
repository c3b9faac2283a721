package auth

import (
	"context"
	"sync"

	"schedrestd/errs"
)

// mostAsked is the maximum number of concurrent questions to each daemon.
// Without this limit, a client that sends many new tokens could make a worker
// open an unlimited number of connections to a daemon.
const mostAsked = 64

// questions holds the pending questions to daemons. The zero value has no
// questions.
type questions struct {
	mu    sync.Mutex
	asked map[acceptance]*question
	slots map[string]chan struct{} // by daemon, so that a slow daemon does not delay the questions to others
}

// question is one pending question.
type question struct {
	answered chan struct{} // closed when the question is answered or abandoned
	given    bool          // whether there is an answer
	err      error         // the answer
}

// once asks a question, or waits for the answer if the same question is
// pending. So a new token in many concurrent requests causes a single question.
// Both an acceptance and a rejection are answers. If the client of the request
// that asks disconnects, there is no answer. In this case one of the waiting
// requests asks.
func (q *questions) once(ctx context.Context, of acceptance, ask func(context.Context) error) error {
	for {
		one, mine := q.join(of)
		if mine {
			return q.ask(ctx, of, one, ask)
		}
		select {
		case <-one.answered:
			if one.given {
				return one.err
			}
		case <-ctx.Done():
			return gaveUp(ctx, of)
		}
	}
}

// join returns the pending question, or registers a new one. If mine is true,
// the caller must ask the question.
func (q *questions) join(of acceptance) (one *question, mine bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if one = q.asked[of]; one != nil {
		return one, false
	}
	if q.asked == nil {
		q.asked = map[acceptance]*question{}
	}
	one = &question{answered: make(chan struct{})}
	q.asked[of] = one
	return one, true
}

// ask asks the question for all waiting requests.
func (q *questions) ask(ctx context.Context, of acceptance, one *question, ask func(context.Context) error) error {
	defer func() { // deferred, so that even after a panic no request waits forever
		q.mu.Lock()
		if q.asked[of] == one {
			delete(q.asked, of)
		}
		q.mu.Unlock()
		close(one.answered)
	}()
	slots := q.slotsOf(of.daemon)
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return gaveUp(ctx, of)
	}
	err := ask(ctx)
	one.given, one.err = err == nil || ctx.Err() == nil, err
	return err
}

func (q *questions) slotsOf(daemon string) chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.slots == nil {
		q.slots = map[string]chan struct{}{}
	}
	if q.slots[daemon] == nil {
		q.slots[daemon] = make(chan struct{}, mostAsked)
	}
	return q.slots[daemon]
}

// forget makes new requests ask again instead of waiting for pending questions,
// whose answers may be based on previous keys.
func (q *questions) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.asked)
}

func gaveUp(ctx context.Context, of acceptance) error {
	return errs.Wrap(context.Cause(ctx), errs.Unavailable, "token not verified by the %s in time", of.daemon)
}
