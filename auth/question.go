package auth

import (
	"context"
	"sync"

	"schedrestd/errs"
)

// mostAsked limits concurrent questions to one daemon. A client that sends
// tokens that were never seen before makes a worker keep at most this many
// connections to it.
const mostAsked = 64

// questions holds the questions that daemons are being asked. The zero value
// has none.
type questions struct {
	mu    sync.Mutex
	asked map[acceptance]*question
	slots map[string]chan struct{} // by daemon, so that a slow daemon does not delay questions to the other
}

// question is one pending question.
type question struct {
	answered chan struct{} // closed when it is answered or given up
	given    bool          // there is an answer
	err      error         // the answer
}

// once asks, or waits for the answer when the same question is pending. A
// client that sends one new token many times concurrently costs its daemon one
// question. An acceptance or a rejection is an answer. When the asking client
// disconnects there is none, and another waiting request asks.
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

// join returns the pending question, or registers it. mine reports whether the
// caller must ask it.
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

// ask asks for all requests that wait.
func (q *questions) ask(ctx context.Context, of acceptance, one *question, ask func(context.Context) error) error {
	defer func() { // even after a panic, so that no request waits indefinitely
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

// forget keeps new requests from joining the pending questions: the answers may
// be based on the previous keys.
func (q *questions) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.asked)
}

func gaveUp(ctx context.Context, of acceptance) error {
	return errs.Wrap(context.Cause(ctx), errs.Unavailable, "token not verified by the %s in time", of.daemon)
}
