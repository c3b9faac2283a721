package client

import (
	"context"
	"sync"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/rpc/message"
)

// A gate limits the connections for long answers. A request enters the gate
// before it connects, and leaves the gate when its answer has been read from
// the connection. Users take turns, so a client that requests a hundred lists
// delays other clients by at most one list.
type gate struct {
	conns    *semaphore.Semaphore[string] // keys are holders
	requests *semaphore.Semaphore[string]
}

func newGate() *gate {
	return &gate{semaphore.New[string](limit.LongConns), semaphore.New[string](limit.LongRequests)}
}

// A place is the place of one request in the gate. A nil *place stands for a
// request that needs none.
type place struct {
	conn    *semaphore.Place[string]
	request *semaphore.Place[string] // nil if the answer had begun before the request entered
}

// enter waits until the gate admits a request of the holder. If
// ctx ends first, enter returns errs.Unavailable. The argument streams says that
// the request has been sent already, and its answer has begun.
func (g *gate) enter(ctx context.Context, holder string, streams bool) (p *place, err error) {
	p = new(place)
	p.conn, err = g.conns.Acquire(ctx, holder)
	if err == nil && !streams {
		if p.request, err = g.requests.Acquire(ctx, holder); err != nil {
			p.conn.Release()
		}
	}
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "server busy: limit of concurrent long answers reached")
	}
	return p, nil
}

// stream records that the answer has begun, and stays on the connection.
func (p *place) stream() {
	if p.request != nil {
		p.request.Release()
	}
}

// leave leaves the gate. It may be called twice.
func (p *place) leave() {
	if p != nil {
		p.stream()
		p.conn.Release()
	}
}

// admitRequest waits until the gate admits r, if the answer to r may be long.
// Waiting takes at most half of the remaining time, so that there is time for
// the answer. The caller must leave the place when it has read the answer from
// the connection.
func (c *Client) admitRequest(ctx context.Context, holder string, r request) (*place, error) {
	if !r.repeatable || !c.long.expects(r, c.now()) {
		return nil, nil // r need not pass the gate
	}
	ctx, cancel := halveDeadline(ctx, true)
	defer cancel()
	return c.gate.enter(ctx, holder, false)
}

// longAnswers records which types of requests had long answers. Without this
// record, all lists would have to pass the gate. A hundred users would then get
// a short list, which takes the controller a tenth of a second, within 2.5 s
// instead of 0.24 s.
type longAnswers struct {
	last sync.Map // time of the last long answer, by message.Type; zero if all were short
}

// longAnswerTTL is the time for which a long answer makes expects expect more
// long answers to requests of the same type. Short answers do not shorten this
// time, because they may have special reasons: perhaps the list has not changed,
// or the user may see only their own jobs.
const longAnswerTTL = 10 * time.Minute

// expects reports whether the answer to r is likely to be long. If r requests a
// list for the first time, it returns true.
func (l *longAnswers) expects(r request, now time.Time) bool {
	if last, known := l.last.Load(r.kind); known {
		return now.Sub(last.(time.Time)) < longAnswerTTL
	}
	return r.list
}

// record records that an answer to a request of type t had n bytes after its
// first piece.
func (l *longAnswers) record(t message.Type, n int, now time.Time) {
	if n > maxShort {
		l.last.Store(t, now)
	} else {
		l.last.LoadOrStore(t, time.Time{})
	}
}
