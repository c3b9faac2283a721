package client

import (
	"context"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// Accounting sends requests to a cluster's accounting daemons. It is safe for
// concurrent use.
type Accounting struct {
	caller
	sessions sessions
}

// accountingDaemon is the word for the accounting daemon in messages.
const accountingDaemon = "accounting daemon"

// NewAccounting returns an Accounting for the accounting daemons in cfg. It
// does not connect to them.
func NewAccounting(cfg Config) *Accounting {
	return &Accounting{caller: newCaller(cfg, accountingDaemon, cfg.Accounting)}
}

// Verify asks the accounting daemon whether it accepts the credential. The
// answer may differ from that of Client.Verify, because the controller may have
// different keys. The accounting daemon checks a credential only when a session
// is opened. So Verify always opens a new session, which later requests can
// use.
func (a *Accounting) Verify(ctx context.Context, cred model.Credential) error {
	return a.withSession(ctx, cred, a.openSession, func(*session) *failure { return nil })
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
	answers, failures := make([]message.AccountingStats, len(a.list)), make([]*failure, len(a.list))
	pings, err := a.pingAll(ctx, func(ctx context.Context, i int, d *daemon) (time.Duration, error) {
		start := time.Now()
		s, f := a.openSession(ctx, d, cred)
		if f != nil {
			failures[i] = f
			return time.Since(start), f
		}
		defer s.discard()
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
	err := a.withSession(ctx, cred, a.session, func(s *session) *failure {
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
// stored once.
func (a *Accounting) RecordJobs(ctx context.Context, cred model.Credential, jobs []model.Job) error {
	return a.withSession(ctx, cred, a.session, func(s *session) *failure {
		if s.version < recordsSince {
			return newFailure(stageVersion, errs.New(errs.Unsupported, "the accounting daemon does not accept records of jobs: it is not scheddbd"))
		}
		return s.call(message.AccountingRecordJobs, &message.RecordJobs{Jobs: jobs}, message.AccountingRC, nil)
	})
}

// withSession calls the function get to obtain a session, and calls fn with
// that session. It tries the accounting daemons in turn until one answers or fn
// returns a final failure. So it may call fn several times, each time with
// another session.
func (a *Accounting) withSession(ctx context.Context, cred model.Credential, get sessionFunc, fn func(*session) *failure) error {
	ctx, cancel := a.limit(ctx)
	defer cancel()
	var failures []*failure
	order := a.order()
	for i, d := range order {
		f := a.callDaemon(ctx, d, cred, i < len(order)-1, get, fn)
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

// A sessionFunc is one of the methods openSession and session.
type sessionFunc func(context.Context, *daemon, model.Credential) (*session, *failure)

// session returns an idle session that belongs to this credential, or opens a
// new one. The daemon does not check the credential of an idle session again,
// so the caller must have called Verify recently.
func (a *Accounting) session(ctx context.Context, d *daemon, cred model.Credential) (*session, *failure) {
	if s := a.sessions.get(ownerOf(d, cred)); s != nil {
		s.setContext(ctx)
		return s, nil
	}
	return a.openSession(ctx, d, cred)
}

// callDaemon obtains a session with the daemon d and calls fn with it. If an
// idle session turns out to be closed or hung, callDaemon calls fn again with a
// new session.
func (a *Accounting) callDaemon(ctx context.Context, d *daemon, cred model.Credential, moreDaemons bool,
	get sessionFunc, fn func(*session) *failure) *failure {
	ctx, cancel := halveDeadline(ctx, moreDaemons)
	defer cancel()
	s, f := get(ctx, d, cred)
	if f != nil {
		return f
	}
	limit := ctx
	if deadline, ok := ctx.Deadline(); ok && a.sessions.isStale(s) {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeout(ctx, time.Until(deadline)/4)
		defer cancel()
		s.stop()
		s.setContext(limit)
	}
	if s.reused {
		f = s.receiveRollback()
	}
	if f == nil {
		f = fn(s)
	}
	a.releaseSession(s, f)
	// If the daemon's machine is down, packets are lost without an error. A
	// request in an idle session then fails only when its context (limit) ends.
	// This context ends well before the call's own time limit, which leaves
	// time for a new session.
	hung := f != nil && limit != ctx && isTimeout(f.err) && ctx.Err() == nil
	if f == nil || f.final || !s.reused || !closedByDaemon(f) && !hung {
		return f
	}
	// The daemon was restarted, or has closed the idle session. In either case
	// it may accept a new session.
	if s, f = a.openSession(ctx, d, cred); f != nil {
		return f
	}
	f = fn(s)
	a.releaseSession(s, f)
	return f
}
