package client

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/model"
)

const (
	parkDelay  = time.Second           // how long a call waits for an answer before Config.Park is called
	queueDelay = 10 * time.Millisecond // how long it waits for its turn before that
)

// A turn is the right of a call to use a session. Users take turns: one with
// many calls delays their own. A nil *turn stands for a request that needs none,
// because it is always short.
type turn struct {
	caller   *caller
	place    *semaphore.Place[string]
	ctx      context.Context
	cancel   context.CancelCauseFunc
	kept     atomic.Bool // a session that uses it is not finished when the call is
	changing atomic.Bool // a change has been sent, so the call must not end early

	mu     sync.Mutex // guards the fields below
	waits  int        // number of waits that have begun and not ended
	resume func()     // what Config.Park has returned; nil if the call is not parked
}

// turnKey is the key of the turn in the context of a call during a transaction.
type turnKey struct{}

// maxMessages limits a transaction to this many times Config.LongTimeout.
const maxMessages = 3

// takeTurn waits for a turn, for at most half of the time limit of a call. The
// caller must use the turn's context for the call, and call leave at its end.
func (a *Accounting) takeTurn(ctx context.Context, cred model.Credential) (*turn, error) {
	t := &turn{caller: &a.caller}
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	limited, cancel := context.WithTimeout(t.ctx, a.cfg.LongTimeout/2)
	defer cancel()
	over := t.await(queueDelay)
	defer over()
	var err error
	if t.place, err = a.turns.Acquire(limited, holderOf(cred)); err != nil {
		defer t.cancel(nil)
		return nil, t.endedBy(errs.Wrap(err, errs.Unavailable, "server busy: limit of concurrent requests to the %s reached", a.kind))
	}
	inUse, _ := a.turns.Counts()
	a.sessions.trim(min(limit.IdleSessions.Total, limit.AccountingCalls.Total-inUse))
	return t, nil
}

// keep makes the turn last until release is called.
func (t *turn) keep() {
	if t != nil {
		t.kept.Store(true)
	}
}

// leave ends the call, and its turn unless a session keeps it.
func (t *turn) leave() {
	if !t.kept.Load() {
		t.release()
	}
	t.cancel(nil)
}

// detach records that a change is about to be sent, so that the call does not end
// early. If the client leaves, the call only waits for the daemon from then on. The
// function over must be called at the end of the call.
func (t *turn) detach() (over func()) {
	t.changing.Store(true)
	end := t.begin()
	stop := context.AfterFunc(t.ctx, t.park)
	return func() {
		stop()
		end()
	}
}

func (t *turn) release() {
	if t != nil {
		t.place.Release()
	}
}

// errNeeded is the error of a call that is ended for other clients.
var errNeeded = errs.New(errs.Unavailable, "server busy: the connection is needed for other clients")

// end ends the call early, unless it has sent a change.
func (t *turn) end(err error) {
	if !t.changing.Load() {
		t.cancel(err)
	}
}

// endedBy returns the error for which the call was ended early, or err if it was
// not.
func (t *turn) endedBy(err error) error {
	if early, ok := errors.AsType[*errs.Error](context.Cause(t.ctx)); ok && !t.changing.Load() {
		return early
	}
	return err
}

// await calls Config.Park if the call waits for longer than delay. The function
// over ends the wait. It may be called twice.
func (t *turn) await(delay time.Duration) (over func()) {
	if t == nil {
		return func() {}
	}
	end := t.begin()
	timer := time.AfterFunc(delay, t.park)
	return func() {
		timer.Stop()
		end()
	}
}

// begin begins a wait, during which the call may be parked. If the function end
// ends the last wait, the call goes on.
func (t *turn) begin() (end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waits++
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.waits--; t.resume != nil && (t.waits == 0 || t.ctx.Err() == nil) {
			t.resume()
			t.resume = nil
		}
	})
}

// park calls Config.Park, unless the call is parked already or does not wait.
func (t *turn) park() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.caller.cfg.Park == nil || t.waits == 0 || t.resume != nil || t.ctx.Err() != nil && !t.changing.Load() {
		return
	}
	resume, err := t.caller.cfg.Park(context.WithoutCancel(t.ctx), t.changing.Load(), func() { t.end(errNeeded) })
	if err != nil {
		t.end(err)
		return
	}
	t.resume = resume
}

// abandon ends a session whose last request has not been answered, because the
// client has left, or because the time is over. slurmdbd notices this only when
// it sends the answer. Until then, the query keeps a thread and a connection to
// the database busy, so it counts against the user who sent it. Otherwise a
// client that sends a query and leaves, again and again, would take all threads.
// A scheddbd ends the query.
func (a *Accounting) abandon(s *session) {
	t := s.turn
	if t == nil || closeWrite(s.nc) != nil {
		s.close()
		return
	}
	t.keep()
	s.nc.SetDeadline(time.Now().Add(a.cfg.LongTimeout))
	go func() {
		_, _ = s.nc.Read(make([]byte, 1))
		s.end()
	}()
}

// closeWrite shuts down the sending side of a connection to a daemon.
func closeWrite(nc net.Conn) error {
	if half, ok := nc.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return errors.ErrUnsupported
	}
	raw, err := sc.SyscallConn()
	if err == nil {
		controlErr := raw.Control(func(fd uintptr) { err = syscall.Shutdown(int(fd), syscall.SHUT_WR) })
		err = errors.Join(err, controlErr)
	}
	return err
}
