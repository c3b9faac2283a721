package auth

import (
	"context"
	"sync"

	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
)

// questions holds the pending questions to daemons. The zero value has no
// questions.
type questions struct {
	mu      sync.Mutex // guards the fields below
	pending map[acceptance]*question
	places  map[string]*semaphore.Semaphore[string] // by daemon, so that a slow daemon does not delay questions to other daemons; keys are sources of clients
}

// question is one pending question.
type question struct {
	done      chan struct{} // closed when the question is answered or abandoned
	hasAnswer bool          // whether there is an answer
	err       error         // the answer
}

// askOnce asks a question, and returns the error from ask, which is nil if the
// daemon accepts the credential. If the same question is already pending,
// askOnce waits for the answer to that question instead. So concurrent requests
// with the same new token cause a single question. If the client of the request
// that asks disconnects before there is an answer, one of the waiting requests
// asks again.
func (q *questions) askOnce(ctx context.Context, key acceptance, ask func(context.Context) error) error {
	for {
		pending, created := q.join(key)
		if created {
			return q.ask(ctx, key, pending, ask)
		}
		select {
		case <-pending.done:
			if pending.hasAnswer {
				return pending.err
			}
		case <-ctx.Done():
			return cancelledError(ctx, key)
		}
	}
}

// join returns the pending question with the given key. If there is none, join
// adds one. In that case created is true, and the caller must ask the question.
func (q *questions) join(key acceptance) (pending *question, created bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if pending = q.pending[key]; pending != nil {
		return pending, false
	}
	if q.pending == nil {
		q.pending, q.places = map[acceptance]*question{}, map[string]*semaphore.Semaphore[string]{}
	}
	if q.places[key.daemon] == nil {
		q.places[key.daemon] = semaphore.New[string](limit.TokenQuestions)
	}
	pending = &question{done: make(chan struct{})}
	q.pending[key] = pending
	return pending, true
}

// ask asks a pending question, and passes the answer on to all waiting
// requests.
func (q *questions) ask(ctx context.Context, key acceptance, pending *question, ask func(context.Context) error) error {
	defer func() { // deferred, so that even after a panic no request waits forever
		q.mu.Lock()
		if q.pending[key] == pending {
			delete(q.pending, key)
		}
		q.mu.Unlock()
		close(pending.done)
	}()
	peer, _ := PeerFrom(ctx)
	q.mu.Lock()
	places := q.places[key.daemon]
	q.mu.Unlock()
	place, err := places.Acquire(ctx, peer.Source())
	if err != nil {
		return cancelledError(ctx, key)
	}
	defer place.Release()
	err = ask(ctx)
	pending.hasAnswer, pending.err = err == nil || ctx.Err() == nil, err
	return err
}

// forget makes new requests ask again instead of waiting for pending questions.
// The answers to the pending questions may be based on previous keys.
func (q *questions) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.pending)
}

func cancelledError(ctx context.Context, key acceptance) error {
	return errs.Wrap(context.Cause(ctx), errs.Unavailable, "token not verified by the %s in time", key.daemon)
}
