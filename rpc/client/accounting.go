package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// Accounting sends requests to a cluster's accounting daemons. It is safe for
// concurrent use.
type Accounting struct {
	caller
	sessions sessions
	turns    *semaphore.Semaphore[string] // keys are holders
}

// accountingDaemon is the word for the accounting daemon in messages.
const accountingDaemon = "accounting daemon"

// NewAccounting returns an Accounting for the accounting daemons in cfg. It
// does not connect to them.
func NewAccounting(cfg Config) *Accounting {
	return &Accounting{caller: newCaller(cfg, accountingDaemon, cfg.Accounting),
		turns: semaphore.New[string](limit.AccountingCalls)}
}

// Verify asks the accounting daemon whether it accepts the credential. The
// answer may differ from that of Client.Verify, because the controller may have
// different keys. The accounting daemon checks a credential only when a session
// is opened. So Verify always opens a new session, which later requests can
// use.
func (a *Accounting) Verify(ctx context.Context, cred model.Credential) error {
	return a.withSession(ctx, cred, a.newSession, func(*session) *failure { return nil })
}

// Ping pings all accounting daemons concurrently, like Client.Ping.
func (a *Accounting) Ping(ctx context.Context, cred model.Credential) ([]model.Ping, error) {
	return a.pingAll(ctx, func(ctx context.Context, _ int, d *daemon) (time.Duration, error) {
		start := time.Now()
		s, f := a.openSession(ctx, d, cred)
		if f != nil {
			return time.Since(start), f
		}
		s.discard()
		return s.latency, nil
	})
}

// Stats returns the statistics of the first accounting daemon in the list that
// reports any. Like Ping, it also pings every daemon. It opens only one session
// with each daemon.
func (a *Accounting) Stats(ctx context.Context, cred model.Credential) (*model.AccountingStats, []model.Ping, error) {
	t, err := a.takeTurn(ctx, cred)
	if err != nil {
		return nil, nil, err
	}
	defer t.leave()
	limited, cancel := context.WithTimeout(t.ctx, a.cfg.LongTimeout)
	defer cancel()
	answers, failures := make([]message.AccountingStats, len(a.list)), make([]*failure, len(a.list))
	pings, err := a.pingAll(ctx, func(ctx context.Context, i int, d *daemon) (time.Duration, error) {
		start := time.Now()
		s, f := a.openSession(ctx, d, cred)
		if f != nil {
			failures[i] = f
			return time.Since(start), f
		}
		defer func() { a.releaseSession(s, failures[i]) }()
		s.stop()
		s.turn = t
		s.setContext(limited)
		failures[i] = s.call(message.AccountingGetStats, message.Empty{}, message.AccountingGotStats, &answers[i])
		return s.latency, nil
	})
	if err != nil {
		return nil, nil, err
	}
	var reported []*failure
	for i, f := range failures {
		if f == nil {
			return &answers[i].AccountingStats, pings, nil
		}
		if reported = append(reported, f); f.stage == stageAnswered {
			break // the daemon has answered, even if with an error
		}
	}
	return nil, nil, a.report(reported)
}

// Conf returns the accounting daemon's configuration. Only daemons of Slurm
// 26.05 or later send it.
func (a *Accounting) Conf(ctx context.Context, cred model.Credential) (*model.AccountingConf, error) {
	q := question{message.AccountingGetConf, message.Empty{}, message.AccountingGotConf}
	var answer message.AccountingConf
	err := a.call(ctx, cred, func(s *session) *failure {
		b, f := q.encode(s)
		if f != nil {
			return f
		}
		return s.exchange(b, q.want, &answer)
	})
	return &answer.AccountingConf, err
}

// recordsSince is the newest protocol version of the first scheddbd that accepts
// records of jobs. It may be older than schedctld, which sends them.
const recordsSince = codec.V2605

// RecordJobs sends jobs to the bundled accounting daemon. If it returns nil,
// the daemon has written the jobs to its disk. A job that is sent twice is
// stored once. A daemon of an older release gets the jobs without their runs.
func (a *Accounting) RecordJobs(ctx context.Context, cred model.Credential, jobs []model.Job) error {
	err := a.record(ctx, cred, message.AccountingRecordRuns, &message.RecordRuns{Jobs: jobs})
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Number == fault.UnexpectedMessage {
		return a.record(ctx, cred, message.AccountingRecordJobs, &message.RecordJobs{Jobs: jobs})
	}
	return err
}

func (a *Accounting) record(ctx context.Context, cred model.Credential, t message.Type, body message.Body) error {
	return a.call(ctx, cred, func(s *session) *failure {
		if s.version < recordsSince {
			return newFailure(stageVersion, errs.New(errs.Unsupported, "the accounting daemon does not accept records of jobs: it is not scheddbd"))
		}
		return s.call(t, body, message.AccountingRC, nil)
	})
}

// call calls the function fn with a session, when it is the turn of the user. It
// tries the accounting daemons in turn until one answers or fn returns a final
// failure. So it may call fn several times, each time with another session.
//
// A call during a transaction uses the turn of that transaction. Otherwise the
// transactions of a user could take all turns, and then each wait for one more.
func (a *Accounting) call(ctx context.Context, cred model.Credential, fn func(*session) *failure) error {
	if outer, ok := ctx.Value(turnKey{}).(*turn); ok && outer.caller == &a.caller {
		limited, cancel := context.WithTimeout(ctx, a.cfg.LongTimeout)
		defer cancel()
		return a.withSession(limited, cred, a.session, fn)
	}
	t, err := a.takeTurn(ctx, cred)
	if err != nil {
		return err
	}
	defer t.leave()
	limited, cancel := context.WithTimeout(t.ctx, maxMessages*a.cfg.LongTimeout)
	defer cancel()
	err = a.withSession(limited, cred, a.session, func(s *session) *failure {
		s.turn = t
		return fn(s)
	})
	if err != nil {
		return t.endedBy(err)
	}
	return nil
}

// withSession does the work of call, without a turn. It calls the function get to
// obtain a session.
func (a *Accounting) withSession(ctx context.Context, cred model.Credential, get sessionFunc, fn func(*session) *failure) error {
	var failures []*failure
	order := a.order()
	for _, d := range order {
		f := a.callDaemon(ctx, d, cred, get, fn)
		if f == nil {
			a.markAnswered(d)
			return nil
		}
		if f.stage == stageCreate {
			return a.report([]*failure{f}) // the message can't be created for another daemon either
		}
		if failures = append(failures, f); f.stage == stageAnswered || f.final || ctx.Err() != nil {
			break
		}
	}
	return a.report(failures)
}

// A sessionFunc is one of the methods newSession and session. The session that
// it returns fails when the context ends.
type sessionFunc func(context.Context, *daemon, model.Credential) (*session, *failure)

// session returns an idle session that belongs to this credential, or opens a
// new one. The daemon does not check the credential of an idle session again,
// so the caller must have called Verify recently.
func (a *Accounting) session(ctx context.Context, d *daemon, cred model.Credential) (*session, *failure) {
	if s := a.sessions.get(ownerOf(d, cred)); s != nil && a.isAlive(ctx, s) {
		s.holder = holderOf(cred) // Verify has opened it for another one
		s.setContext(ctx)
		return s, nil
	}
	return a.newSession(ctx, d, cred)
}

// isAlive prepares an idle session for the next request. It returns false, and
// closes the session, if the daemon has closed it, or does not answer within a
// quarter of the time limit for opening a session. If the machine of the daemon
// is down, packets are lost without an error, and the request itself would wait
// for an answer much longer.
func (a *Accounting) isAlive(ctx context.Context, s *session) bool {
	limited, cancel := context.WithTimeout(ctx, a.cfg.Timeout/4)
	defer cancel()
	s.setContext(limited)
	f := s.receiveRollback()
	if f == nil && a.sessions.isStale(s) {
		f = s.endTransaction(rollback)
	}
	if f != nil || !s.stop() {
		s.discard()
		return false
	}
	return true
}

// newSession opens a session. A daemon that does not answer must be found soon,
// although a request may take much longer. So opening a session has its own time
// limit, which the daemons share.
func (a *Accounting) newSession(ctx context.Context, d *daemon, cred model.Credential) (*session, *failure) {
	limited, cancel := context.WithTimeout(ctx, a.cfg.Timeout/time.Duration(len(a.list)))
	defer cancel()
	s, f := a.openSession(limited, d, cred)
	if f != nil {
		return nil, f
	}
	if !s.stop() {
		s.close()
		return nil, newFailure(stageReceive, fmt.Errorf("open a session with %s: %w", d.name, context.Cause(limited)))
	}
	s.nc.SetDeadline(time.Time{})
	s.setContext(ctx)
	return s, nil
}

// callDaemon obtains a session with the daemon d and calls fn with it. If an
// idle session turns out to be closed, callDaemon calls fn again with a new
// session.
func (a *Accounting) callDaemon(ctx context.Context, d *daemon, cred model.Credential,
	get sessionFunc, fn func(*session) *failure) *failure {
	s, f := get(ctx, d, cred)
	if f != nil {
		return f
	}
	f = fn(s)
	a.releaseSession(s, f)
	if f == nil || !s.reused || !closedByDaemon(f) {
		return f
	}
	// The daemon was restarted, or has closed the idle session. In either case
	// it may accept a new session.
	if s, f = a.newSession(ctx, d, cred); f != nil {
		return f
	}
	f = fn(s)
	a.releaseSession(s, f)
	return f
}
