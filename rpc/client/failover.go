package client

import (
	"context"
	"errors"
	"strings"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// request is a request to a controller.
type request struct {
	kind       message.Type
	body       message.Body
	repeatable bool // repeating it is harmless
	list       bool // it requests all records of a kind
	prompt     bool // as model.Query.Prompt
	alone      bool // its answer is not shared with other calls
	whole      bool // its answer must not stay on the connection

	// dated returns the body of a request that the controller answers with "no
	// change" if nothing has changed since this time. If it is not nil, the
	// answer is kept for a while, and transferred again only if it has changed.
	dated func(since model.Time) message.Body

	// perform takes the place of sending the request, if it is not nil. It is for
	// calls that ask all daemons, and share the result. It must call sending.
	perform func(ctx context.Context, sending func()) (*reply, error)

	sending func() // called before the request is sent, each time; nil for none
	began   func() // called when the answer has begun, or has failed to; nil for none

	since codec.Version // the oldest version that has this request
}

// datedList returns the request for a list, or for what has changed in it since
// q.Since. The function body returns the body of such a request.
func datedList(kind message.Type, q model.Query, body func(since model.Time) message.Body) request {
	r := request{kind: kind, body: body(q.Since), repeatable: true, list: true}
	if q.Undated && q.Since == 0 {
		r.dated = body
	}
	return r
}

// do sends r to the controllers in turn until one answers. It tries the next
// controller only if the previous one can't have carried out r, or if r may be
// carried out twice.
func (c *Client) do(ctx context.Context, cred model.Credential, r request) (*reply, error) {
	p, err := c.admitRequest(ctx, holderOf(cred), r)
	if err != nil {
		return nil, err
	}
	defer func() { p.leave() }()
	var failures []*failure
	order := c.order()
	for i, d := range order {
		answer, f := c.sendTo(ctx, d, cred, r, p, i < len(order)-1)
		switch {
		case f == nil && !isStandby(answer):
			c.clearHung(d)
			c.markAnswered(d)
			c.long.record(r.kind, answer.remaining, c.now())
			if answer.streaming {
				p = nil // the answer leaves the gate when it has been read
			}
			return answer, nil
		case f == nil:
			answer.release()
			f = newFailure(stageVersion, fault.Of(fault.Standby, ""))
		case f.stage == stageCreate:
			return nil, c.report([]*failure{f}) // the message can't be created for another controller either
		}
		switch {
		case !f.notExecuted() && !r.repeatable:
			return nil, c.outcomeUnknown(f)
		case f.final:
			return nil, c.report([]*failure{f})
		}
		if failures = append(failures, f); ctx.Err() != nil {
			break
		}
	}
	return nil, c.report(failures)
}

// checkCarried returns a failure if body is a change with a value that protocol
// version v can't carry. The daemon would make another change.
func checkCarried(daemon string, v codec.Version, body message.Body) *failure {
	switch lost, err := message.Lost(v, body); {
	case err != nil:
		return newFailure(stageCreate, err)
	case len(lost) > 0:
		return newFailure(stageVersion, errs.New(errs.Unsupported,
			"the %s speaks the protocol of Slurm %s, which can't carry the request's value of %s", daemon, v.Release(), strings.Join(lost, ", ")))
	}
	return nil
}

// sendTo sends r to one controller. If moreDaemons is set, sendTo leaves time
// to try other controllers: a request that may be repeated gets at most half of
// the remaining time.
func (c *Client) sendTo(ctx context.Context, d *daemon, cred model.Credential, r request, p *place, moreDaemons bool) (*reply, *failure) {
	half, cancel := halveDeadline(ctx, moreDaemons)
	defer cancel()
	reqCtx := ctx
	if r.repeatable {
		reqCtx = half
	}
	for attempt := range 2 {
		v, f := c.findVersionLimited(half, d, cred)
		if f != nil {
			f.probe = true
			return nil, f
		}
		if v < r.since {
			return nil, newFailure(stageVersion, errs.New(errs.Unsupported,
				"the controller speaks the protocol of Slurm %s, but the request needs that of %s or later", v.Release(), r.since.Release()))
		}
		if !r.repeatable || r.kind == message.RequestEstimate { // a dry run refuses what the submission refuses
			if f := checkCarried(c.kind, v, r.body); f != nil {
				return nil, f
			}
		}
		answer, f := c.exchange(reqCtx, d, v, cred, r, reception{c.cfg.Answers.allowance(holderOf(cred)), p})
		switch {
		case f == nil || f.final:
			return answer, f
		case f.stage == stageClosed && !r.repeatable:
			d.forgetVersion() // the next call finds out whether d was restarted with an older release
			return nil, f
		case f.stage == stageClosed:
			if attempt > 0 {
				return nil, f
			}
			if f := c.recheckVersion(half, d, cred, v); f != nil {
				return nil, f
			}
		case f.stage == stageVersion && attempt == 0:
			d.forgetVersion() // d was restarted with another release, and did nothing
		default:
			if timedOut(f) && reqCtx.Err() != context.Canceled {
				c.markHung(d)
			}
			if f.stage != stageCreate && !errors.Is(f.err, context.Canceled) {
				d.forgetVersion() // d may have been restarted with another release, so probe it again next time
			}
			return nil, f
		}
	}
	panic("unreachable")
}

// findVersionLimited calls findVersion. If the controller hung before, the call
// gets only a quarter of the remaining time. This leaves time for the other
// controllers. Once the controller has answered a ping, later calls get all the
// remaining time again.
func (c *Client) findVersionLimited(ctx context.Context, d *daemon, cred model.Credential) (codec.Version, *failure) {
	if !c.isHung(d) {
		v, f := c.findVersion(ctx, d, cred)
		if f != nil && timedOut(f) && ctx.Err() != context.Canceled {
			c.markHung(d)
		}
		return v, f
	}
	half, cancel := halveDeadline(ctx, true)
	defer cancel()
	quarter, cancel := halveDeadline(half, true)
	defer cancel()
	v, f := c.findVersion(quarter, d, cred)
	if f == nil {
		c.clearHung(d)
	}
	return v, f
}

// halveDeadline returns a context that ends with ctx. If halve is set and ctx has
// a deadline, the returned context ends earlier, after half of the remaining time,
// so that the other half is left for what follows.
func halveDeadline(ctx context.Context, halve bool) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !halve || !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/2)
}

// limit returns a context that also has the client's own time limit.
func (c *caller) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.cfg.Timeout)
}

// isStandby reports whether the answer comes from a backup on standby, which
// does not carry out requests.
func isStandby(answer *reply) bool {
	if answer.kind != message.ResponseRC {
		return false
	}
	var rc message.RC
	return answer.decode(&rc) == nil && (rc.Code == fault.Standby || rc.Code == fault.StandbyUseBackup)
}
