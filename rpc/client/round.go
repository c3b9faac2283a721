package client

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/origin"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// rounds lets calls share an answer of the controller if they have the same
// credential and send the same request. Only one such request is under way at a
// time. Calls that arrive meanwhile share the next one. So no answer is older
// than a call that gets it, and a hundred clients that poll a list cost the
// controller as much as one.
//
// The next request is sent when the first of several calls has used a long
// answer. By then its records have usually been rendered, which may take longer
// than the request. Otherwise each answer would be rendered while the others are, for
// fewer calls, and together they would take all processors from short requests.
type rounds struct {
	mu     sync.Mutex // guards all series, rounds and kept answers; locked before that of a Budget
	series map[roundKey]*series
	kept   store
}

// maxPause limits how long a round waits for the first use of the previous
// answer, because all who use it may be slow.
const maxPause = time.Second

// roundKey says which calls may share an answer.
type roundKey struct {
	owner owner // the credential; its daemon is not set
	kind  message.Type
	body  string // of the request, in the newest protocol
	dated bool   // whether the answer may have an earlier time
	all   bool   // whether all daemons are asked
}

// A series is the rounds with one key, one after the other.
type series struct {
	key  roundKey
	open *round        // the round that calls can join; nil for none
	idle chan struct{} // closed when the next request may be sent
}

// A round is one request to the controller, for one or more calls.
type round struct {
	series  *series
	cred    model.Credential
	request request
	ctx     context.Context
	cancel  context.CancelFunc

	calls   int           // calls that wait for the answer
	keep    time.Duration // how long the answer is kept; 0 for no time
	asked   time.Time     // when the request was sent
	changes int           // the value of store.changes at that time

	ended     chan struct{} // closed when the fields below are set
	answers   []*reply      // one for each call that still waits; fewer if they can't share it
	err       error
	abandoned bool   // the request was cancelled, because all calls had left; a later call may have joined nevertheless
	panicked  string // a panic and its stack; "" for none
}

// isLate reports whether the time limit of the first call of the round, if it has
// one of its own, is over.
func (rd *round) isLate() bool {
	deadline, limited := rd.ctx.Deadline()
	return limited && !time.Now().Before(deadline)
}

// ask sends a request and returns the answer, which it may share with other
// calls. If ctx has an origin.Origin, the answer may be an older one.
func (c *Client) ask(ctx context.Context, cred model.Credential, r request) (*reply, error) {
	if !r.repeatable {
		defer c.rounds.changed()
	}
	if !r.repeatable || r.prompt || r.alone {
		return c.askAlone(ctx, cred, r)
	}
	e := codec.NewEncoder(codec.Newest, nil)
	r.body.Walk(e)
	if e.Finish() != nil {
		return c.askAlone(ctx, cred, r) // which reports the error
	}
	key, data := roundKey{ownerOf(nil, cred), r.kind, string(e.Bytes()), r.dated != nil, r.perform != nil}, origin.From(ctx)
	if answer := c.rounds.recall(key, c.now(), data.Accepts); answer != nil {
		c.reused(true)
		return answer, nil
	}
	rd, first := c.join(ctx, key, cred, r, data.KeepFor())
	select {
	case <-rd.ended:
	case <-ctx.Done():
		if c.rounds.leave(rd) {
			return nil, errs.Wrap(context.Cause(ctx), errs.Timeout, "the %s does not answer in time", c.kind)
		}
		<-rd.ended
	}
	answer, err := c.rounds.take(rd)
	switch {
	case err == nil && answer == nil: // it stays on the connection, so one call got it
		limited, cancel := c.limit(ctx)
		defer cancel()
		return c.ask(limited, cred, r)
	case err != nil && ctx.Err() == nil && (rd.abandoned || !first && rd.isLate()): // the first call has left, or had less time
		return c.ask(ctx, cred, r)
	case err == nil && !first:
		c.reused(false)
	}
	return answer, err
}

func (c *Client) askAlone(ctx context.Context, cred model.Credential, r request) (*reply, error) {
	limited, cancel := c.limit(ctx)
	defer cancel()
	return c.do(limited, cred, r)
}

// join returns the round that a call shares. If the call is the first, join
// starts the round. The argument keep says how long the answer is to be kept.
func (c *Client) join(ctx context.Context, key roundKey, cred model.Credential, r request, keep time.Duration) (rd *round, first bool) {
	rs := &c.rounds
	rs.mu.Lock()
	defer rs.mu.Unlock()
	s := rs.series[key]
	if s == nil {
		if rs.series == nil {
			rs.series = map[roundKey]*series{}
		}
		s = &series{key: key, idle: make(chan struct{})}
		close(s.idle)
		rs.series[key] = s
	}
	if s.open == nil {
		first = true
		s.open = newRound(ctx, s, cred, r)
		go c.run(s.open, s.idle)
	}
	s.open.calls++
	s.open.keep = max(s.open.keep, keep)
	return s.open, first
}

// newRound returns a round without calls. Its time limit is that of the first
// call, whose end does not end it.
func newRound(ctx context.Context, s *series, cred model.Credential, r request) *round {
	rd := &round{series: s, cred: cred, request: r, ended: make(chan struct{})}
	if r.dated != nil {
		rd.keep = datedLifetime
	}
	base := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		rd.ctx, rd.cancel = context.WithDeadline(base, deadline)
	} else {
		rd.ctx, rd.cancel = context.WithCancel(base)
	}
	return rd
}

// run waits until idle is closed, sends the request of a round, and hands out
// the answer.
func (c *Client) run(rd *round, idle <-chan struct{}) {
	defer rd.cancel()
	select {
	case <-idle:
		answer, err := c.send(rd)
		c.rounds.end(rd, answer, err, c.cfg.Answers)
	case <-rd.ctx.Done():
		c.rounds.giveUp(rd, errs.Wrap(context.Cause(rd.ctx), errs.Timeout, "the %s does not answer in time", c.kind))
	}
}

// send sends the request of a round, and returns the answer. From the moment when
// the request is sent, calls can no longer join the round.
func (c *Client) send(rd *round) (*reply, error) {
	rs, r := &c.rounds, rd.request
	r.sending = sync.OnceFunc(func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		rd.series.open, rd.series.idle = nil, make(chan struct{})
		rd.asked, rd.changes = c.now(), rs.kept.changes
	})
	defer r.sending() // even if the request could not be sent
	defer func() {
		if p := recover(); p != nil { // each call panics with it, which ends a request; here it would end the process
			rd.panicked = fmt.Sprintf("%v\n%s", p, debug.Stack())
		}
	}()
	if r.perform != nil {
		return r.perform(rd.ctx, r.sending)
	}
	return c.askDated(rd.ctx, rd.series.key, rd.cred, r)
}

// end hands out the answer of a round, and keeps it if a call wants that. If
// several calls share a long answer, the next round begins when one has used it.
func (rs *rounds) end(rd *round, answer *reply, err error, budget *Budget) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	defer close(rd.ended)
	rd.err = err
	switch {
	case answer == nil:
	case rd.keep > 0 && answer.isKeepable() && rd.changes == rs.kept.changes:
		rd.answers = answer.share(rd.calls + 1)
		rs.keepLocked(rd.series.key, holderOf(rd.cred), rd.answers[rd.calls], rd.asked, rd.keep, budget)
		rd.answers = rd.answers[:rd.calls]
	default:
		rd.answers = answer.share(rd.calls)
	}
	if len(rd.answers) <= 1 || rd.answers[0].pieces == nil {
		rs.beginNextLocked(rd.series)
		return
	}
	next := sync.OnceFunc(func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		rs.beginNextLocked(rd.series)
	})
	for _, answer := range rd.answers {
		answer.released = next
	}
	time.AfterFunc(maxPause, next)
}

// beginNextLocked lets the next round of a series send its request.
func (rs *rounds) beginNextLocked(s *series) {
	close(s.idle)
	rs.forgetIdleLocked(s)
}

// giveUp ends a round whose request is not sent.
func (rs *rounds) giveUp(rd *round, err error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rd.series.open, rd.err = nil, err
	close(rd.ended)
	rs.forgetIdleLocked(rd.series)
}

// forgetIdleLocked forgets a series that has no round.
func (rs *rounds) forgetIdleLocked(s *series) {
	select {
	case <-s.idle:
		if s.open == nil {
			delete(rs.series, s.key)
		}
	default: // the previous round has not ended
	}
}

// leave removes a call, which no longer waits, from a round. It returns false
// if the call must wait for the end of the round after all: the round has ended
// already, or ends now because the call is its last one.
func (rs *rounds) leave(rd *round) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	select {
	case <-rd.ended:
		return false
	default:
	}
	if rd.calls > 1 {
		rd.calls--
		return true
	}
	if !rd.isLate() { // otherwise the controller is late, which is not the same as a client that has left
		rd.abandoned = true
		rd.cancel()
	}
	return false
}

// take returns an answer of a round that has ended, or nil for none.
func (rs *rounds) take(rd *round) (*reply, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	switch {
	case rd.panicked != "":
		panic(rd.panicked)
	case len(rd.answers) == 0:
		return nil, copyError(rd.err)
	}
	last := len(rd.answers) - 1
	answer := rd.answers[last]
	rd.answers[last] = nil
	rd.answers = rd.answers[:last]
	return answer, nil
}

// copyError returns a copy of an error that several calls get, because the
// callers add to it.
func copyError(err error) error {
	if e, ok := err.(*errs.Error); ok {
		copied := *e
		return &copied
	}
	return err
}

// share returns n replies with the same content, which are used independently.
// A reply that is still on the connection can't be shared: share returns it
// alone.
func (a *reply) share(n int) []*reply {
	a.content = new(content)
	if n <= 1 || a.streaming {
		return []*reply{a}
	}
	list := make([]*reply, n)
	for i := range list {
		list[i] = a.copy()
	}
	if pieces, ok := a.pieces.(*wire.Pieces); ok { // they release the memory of the answer
		for i, share := range pieces.Share(n) {
			list[i].pieces = share
		}
	}
	return list
}

// copy returns a reply with the same content, except the pieces.
func (a *reply) copy() *reply {
	return &reply{version: a.version, kind: a.kind, first: a.first, remaining: a.remaining, daemonKind: a.daemonKind, sent: a.sent, content: a.content, pings: a.pings}
}

// another returns a reply with the same content, which is used independently.
func (a *reply) another() *reply {
	r := a.copy()
	if pieces, ok := a.pieces.(*wire.Pieces); ok {
		r.pieces = pieces.Another()
	}
	return r
}
