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

// request is what is asked of a controller.
type request struct {
	kind       message.Type
	body       message.Body
	repeatable bool // doing it twice does no harm
	list       bool // for all there is of a kind: how long that is nobody knows who has not seen it

	since codec.Version // that has it: a controller that speaks only older ones is not asked
}

// do asks the controllers in turn until one answers: the next when one can't have done
// anything, or when doing it twice does no harm.
func (c *Client) do(ctx context.Context, cred model.Credential, r request) (*reply, error) {
	g := c.daemons
	room := c.room(cred)
	leave, err := c.turn(ctx, room, r)
	if err != nil {
		return nil, err
	}
	defer func() { leave() }()
	var tried []*failure
	order := g.order()
	for i := 0; i < len(order); {
		d := order[i]
		answer, f := c.ask(ctx, d, cred, r, room, i < len(order)-1)
		switch {
		case f == nil && !standby(answer):
			g.responds(d)
			g.answered(d)
			c.usual.note(r.kind, answer, c.now())
			return answer, nil
		case f == nil:
			f = failed(unspoken, fault.Of(fault.Standby, ""))
		case f.wants > 0:
			leave() // and wait where one is in nobody's way
			if leave, err = c.again(ctx, room, r, f.wants+f.wants/slack); err != nil {
				return nil, err
			}
			continue // the same one
		}
		if f.stage == unmade {
			room.less(room.has)
			return nil, g.report([]*failure{f}) // there is none for the next one either
		}
		if !f.undone() && !r.repeatable {
			room.less(room.has)
			return nil, g.unknown(f)
		}
		tried = append(tried, f)
		if ctx.Err() != nil {
			break
		}
		i++
	}
	room.less(room.has)
	return nil, g.report(tried)
}

// slack is which part of an answer it may be longer by when it is asked for again.
const slack = 16

// ask asks one controller. When others are left to be asked, it gets no more than half
// of the time for what may be asked again.
func (c *Client) ask(ctx context.Context, d *daemon, cred model.Credential, r request, room *room, others bool) (*reply, *failure) {
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
		answer, f := c.exchange(within, d, v, cred, r, room)
		switch {
		case f == nil || f.wants > 0:
			return answer, f
		case f.stage == silent && !r.repeatable:
			d.forget() // whether it came back as an older release is the next call's to find out
			return nil, f
		case f.stage == silent:
			if again > 0 {
				return nil, f
			}
			if f := c.doubt(half, d, cred, v); f != nil {
				return nil, f
			}
		case f.stage == unspoken && again == 0:
			d.forget() // it came back as another release, and did nothing
		default:
			if timedOut(f) && within.Err() != context.Canceled {
				c.hangs(d)
			}
			if f.stage != unmade && !errors.Is(f.err, context.Canceled) {
				d.forget() // it may come back as another release: find out anew next time
			}
			return nil, f
		}
	}
	panic("unreachable")
}

// reach is speak, for which one that hung gets a quarter of the time alone: as long as it hangs everybody who is to be
// told so would wait. Once it has answered a ping it has all of the time again.
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

// share is ctx with half of the time that is left, when others are to have the rest.
func share(ctx context.Context, others bool) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !others || !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/2)
}

// limit gives ctx the client's own time limit.
func (c *caller) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, c.cfg.Timeout)
}

// standby tells whether the answer is that of a backup that is not in charge: it did nothing.
func standby(answer *reply) bool {
	if answer.kind != message.ResponseRC {
		return false
	}
	var rc message.RC
	return answer.decode(&rc) == nil && (rc.Code == fault.Standby || rc.Code == fault.StandbyUseBackup)
}
