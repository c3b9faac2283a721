package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/message"
)

var ping = request{kind: message.RequestPing, body: message.Empty{}, repeatable: true}

// Ping pings all controllers concurrently. The results begin with the primary.
// A backup on standby counts as responding. Ping returns an error only if the
// credential is not accepted or can't be created. Calls at about the same time
// share the results.
func (c *Client) Ping(ctx context.Context, cred model.Credential) ([]model.Ping, error) {
	r := ping
	r.perform = func(ctx context.Context, sending func()) (*reply, error) {
		sending()
		pings, err := c.pingEach(ctx, cred)
		if err != nil {
			return nil, err
		}
		return &reply{pings: pings}, nil
	}
	answer, err := c.ask(ctx, cred, r)
	if err != nil {
		return nil, err
	}
	return slices.Clone(answer.pings), nil
}

func (c *Client) pingEach(ctx context.Context, cred model.Credential) ([]model.Ping, error) {
	return c.pingAll(ctx, func(ctx context.Context, _ int, d *daemon) (time.Duration, error) {
		if _, f := c.findVersion(ctx, d, cred); f != nil { // probed before the ping, so that the latency does not include the probe
			return 0, f
		}
		start := time.Now()
		answer, f := c.sendTo(ctx, d, cred, ping, nil, false)
		latency := time.Since(start)
		if f != nil {
			return latency, f
		}
		defer answer.release()
		err := c.daemons.read(answer, message.ResponseRC, nil)
		if err != nil && (numberOf(err) == 0 || errs.KindOf(err) == errs.Unauthenticated) {
			return latency, err // an error without a number is not an answer to a ping
		}
		return latency, nil
	})
}

// pingAll calls pingOne(ctx, i, d) for each daemon d, where d is c.list[i].
// pingOne returns how long the daemon took to answer.
func (c *caller) pingAll(ctx context.Context, pingOne func(context.Context, int, *daemon) (time.Duration, error)) ([]model.Ping, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	pings, refusals := make([]model.Ping, len(c.list)), make([]error, len(c.list))
	var wg sync.WaitGroup
	for i, d := range c.list {
		run := func() {
			latency, err := pingOne(ctx, i, d)
			pings[i] = model.Ping{Hostname: d.name, Mode: d.mode, Primary: i == 0,
				Responding: err == nil, Latency: latency.Microseconds(), TimedOut: timedOut(err)}
			f, isFailure := errors.AsType[*failure](err)
			if isFailure && f.stage == stageCreate || errs.KindOf(err) == errs.Unauthenticated {
				refusals[i] = err
			}
			if pings[i].Err = err; isFailure {
				pings[i].Err = c.report([]*failure{f})
			}
		}
		if i == len(c.list)-1 { // the last daemon, usually the only one, needs no goroutine
			run()
		} else {
			wg.Go(run)
		}
	}
	wg.Wait()
	for _, err := range refusals {
		f, isFailure := errors.AsType[*failure](err)
		switch {
		case err == nil:
		case !isFailure:
			return nil, err
		case f.stage == stageClosed && anyResponding(pings): // this daemon is faulty: another one accepted the credential
		default:
			return nil, c.report([]*failure{f})
		}
	}
	return pings, nil
}

func anyResponding(pings []model.Ping) bool {
	return slices.ContainsFunc(pings, func(p model.Ping) bool { return p.Responding })
}

// Verify asks a controller whether it accepts the credential. The result is
// nil, errs.Unauthenticated, or the reason why no controller answered.
func (c *Client) Verify(ctx context.Context, cred model.Credential) error {
	return c.query(ctx, cred, ping, message.ResponseRC, nil)
}
