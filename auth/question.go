package auth

import (
	"context"
	"sync"

	"schedrestd/errs"
)

// mostAsked is how many questions one daemon is asked at a time: who sends tokens that nobody has seen
// before makes a worker keep that many connections to it, and no more.
const mostAsked = 64

// questions is what daemons are being asked at this moment. The zero questions is none.
type questions struct {
	mu    sync.Mutex
	asked map[vouched]*question
	room  map[string]chan struct{} // by daemon: one that is slow does not keep the other from being asked
}

// question is one that is being asked.
type question struct {
	answered chan struct{} // closed when it is, or given up
	given    bool          // an answer is there
	err      error         // the answer
}

// once asks, unless just that is being asked already: then it waits for the other's answer. Whoever
// sends one new token many times at once costs its daemon one question. An answer is a yes or a
// refusal; where the other's client went away there is none, and the next of those who wait asks.
func (q *questions) once(ctx context.Context, of vouched, ask func(context.Context) error) error {
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

// join is the question of that; mine tells that the caller is the one to ask it.
func (q *questions) join(of vouched) (one *question, mine bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if one = q.asked[of]; one != nil {
		return one, false
	}
	if q.asked == nil {
		q.asked = map[vouched]*question{}
	}
	one = &question{answered: make(chan struct{})}
	q.asked[of] = one
	return one, true
}

// ask asks for all who wait.
func (q *questions) ask(ctx context.Context, of vouched, one *question, ask func(context.Context) error) error {
	defer func() { // whatever happens: nobody must wait for good
		q.mu.Lock()
		if q.asked[of] == one {
			delete(q.asked, of)
		}
		q.mu.Unlock()
		close(one.answered)
	}()
	room := q.roomOf(of.daemon)
	select {
	case room <- struct{}{}:
		defer func() { <-room }()
	case <-ctx.Done():
		return gaveUp(ctx, of)
	}
	err := ask(ctx)
	one.given, one.err = err == nil || ctx.Err() == nil, err
	return err
}

func (q *questions) roomOf(daemon string) chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.room == nil {
		q.room = map[string]chan struct{}{}
	}
	if q.room[daemon] == nil {
		q.room[daemon] = make(chan struct{}, mostAsked)
	}
	return q.room[daemon]
}

// forget lets nobody join what is being asked: the answer may be of the keys of before.
func (q *questions) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.asked)
}

func gaveUp(ctx context.Context, of vouched) error {
	return errs.Wrap(context.Cause(ctx), errs.Unavailable, "token not verified by the %s in time", of.daemon)
}
