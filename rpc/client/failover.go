package client

import (
	"context"
	"errors"
	"time"

	"schedrestd/errs"
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
	list       bool // asks for every record of a kind, which may be many
	prompt     bool // the answer is decoded at once: model.Query

	since codec.Version // the oldest version that has this request; older controllers do not get it
}

// do sends r to the controllers in turn until one answers. It tries the next
// controller if the previous one can't have carried out r, or if a repetition
// of r is harmless.
func (c *Client) do(ctx context.Context, cred model.Credential, r request) (*reply, error) {
	g := c.daemons
	allowance := c.allowance(cred)
	leave, err := c.turn(ctx, allowance, r)
	if err != nil {
		return nil, err
	}
	defer func() { leave() }()
	var tried []*failure
	order := g.order()
	for i := 0; i < len(order); {
		d := order[i]
		answer, f := c.ask(ctx, d, cred, r, allowance, i < len(order)-1)
		switch {
		case f == nil && !standby(answer):
			g.responds(d)
			g.answered(d)
			c.noteSize(r.kind, answer)
			if r.prompt {
				answer.leave, leave = leave, nothing // the answer is still being read
			}
			return answer, nil
		case f == nil:
			f = failed(unspoken, fault.Of(fault.Standby, ""))
		case f.wants > 0:
			leave() // so that waiting does not block others
			if leave, err = c.again(ctx, allowance, r, f.wants+f.wants/slack); err != nil {
				return nil, err
			}
			continue // retry the same controller
		}
		if f.stage == unmade {
			allowance.less(allowance.has)
			return nil, g.report([]*failure{f}) // the message can't be created for another controller either
		}
		if !f.undone() && !r.repeatable {
			allowance.less(allowance.has)
			return nil, g.unknown(f)
		}
		tried = append(tried, f)
		if ctx.Err() != nil {
			break
		}
		i++
	}
	allowance.less(allowance.has)
	return nil, g.report(tried)
}

// slack sets how much an answer may have grown when it is requested again: by
// 1/slack of its size. That much memory is reserved in addition.
const slack = 16

// ask sends r to one controller. If other controllers remain to be tried, a
// repeatable request gets at most half of the remaining time.
func (c *Client) ask(ctx context.Context, d *daemon, cred model.Credential, r request, allowance *allowance, others bool) (*reply, *failure) {
	half, cancel := share(ctx, others)
	defer cancel()
	within := ctx
	if r.repeatable {
		within = half
	}
	for again := range 2 {
		v, f := c.reach(half, d, cred)
		if f != nil {
			f.probe = true
			return nil, f
		}
		if v < r.since {
			return nil, failed(unspoken, errs.New(errs.Unsupported,
				"the controller speaks the protocol of Slurm %s, and what is asked came with %s", v.Release(), r.since.Release()))
		}
		answer, f := c.exchange(within, d, v, cred, r, allowance)
		switch {
		case f == nil || f.wants > 0:
			return answer, f
		case f.stage == silent && !r.repeatable:
			d.forget() // the next call finds out whether d was restarted with an older release
			return nil, f
		case f.stage == silent:
			if again > 0 {
				return nil, f
			}
			if f := c.doubt(half, d, cred, v); f != nil {
				return nil, f
			}
		case f.stage == unspoken && again == 0:
			d.forget() // d was restarted with another release, and did nothing
		default:
			if timedOut(f) && within.Err() != context.Canceled {
				c.hangs(d)
			}
			if f.stage != unmade && !errors.Is(f.err, context.Canceled) {
				d.forget() // d may have been restarted with another release, so probe it again next time
			}
			return nil, f
		}
	}
	panic("unreachable")
}

// reach calls speak. A controller that hung gets only a quarter of the time, so
// that a request has time left for the other controllers. When the controller
// has answered a ping, requests to it get the whole time again.
func (c *Client) reach(ctx context.Context, d *daemon, cred model.Credential) (codec.Version, *failure) {
	if !c.hanging(d) {
		v, f := c.speak(ctx, d, cred)
		if f != nil && timedOut(f) && ctx.Err() != context.Canceled {
			c.hangs(d)
		}
		return v, f
	}
	half, cancel := share(ctx, true)
	defer cancel()
	quarter, cancel := share(half, true)
	defer cancel()
	v, f := c.speak(quarter, d, cred)
	if f == nil {
		c.responds(d)
	}
	return v, f
}

// share returns a context that ends with ctx. If others is set and ctx has a
// deadline, the returned context already ends after half of the remaining time.
func share(ctx context.Context, others bool) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !others || !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/2)
}

// limit returns ctx with the client's own time limit.
func (c *caller) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.cfg.Timeout)
}

// standby reports whether the answer comes from a backup on standby, which did
// nothing.
func standby(answer *reply) bool {
	if answer.kind != message.ResponseRC {
		return false
	}
	var rc message.RC
	return answer.decode(&rc) == nil && (rc.Code == fault.Standby || rc.Code == fault.StandbyUseBackup)
}
