package client

import (
	"context"
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

	since codec.Version // that has it: a controller that speaks only older ones is not asked
}

// do asks the controllers in turn until one answers: the next when one can't have done
// anything, or when doing it twice does no harm.
func (c *Client) do(ctx context.Context, cred model.Credential, r request) (message.Frame, error) {
	g := c.daemons
	var tried []*failure
	order := g.order()
	for i, d := range order {
		answer, f := c.ask(ctx, d, cred, r, i < len(order)-1)
		if f == nil && !standby(answer) {
			g.answered(d)
			return answer, nil
		}
		if f == nil {
			f = failed(unspoken, fault.Of(fault.Standby, ""))
		}
		if !f.undone() && !r.repeatable {
			return message.Frame{}, g.unknown(f)
		}
		tried = append(tried, f)
		if ctx.Err() != nil {
			break
		}
	}
	return message.Frame{}, g.report(tried)
}

// ask asks one controller. When others are left to be asked, it gets no more than half
// of the time for what may be asked again.
func (c *Client) ask(ctx context.Context, d *daemon, cred model.Credential, r request, others bool) (message.Frame, *failure) {
	half, cancel := share(ctx, others)
	defer cancel()
	within := ctx
	if r.repeatable {
		within = half
	}
	for again := range 2 {
		v, f := c.speak(half, d, cred)
		if f != nil {
			f.probe = true
			return message.Frame{}, f
		}
		if v < r.since {
			return message.Frame{}, failed(unspoken, errs.New(errs.Unsupported,
				"the controller speaks the protocol of Slurm %s, and what is asked came with %s", v.Release(), r.since.Release()))
		}
		answer, f := c.exchange(within, d, v, cred, r.kind, r.body)
		if f == nil {
			return answer, nil
		}
		// It may have come back as another release: find out anew next time, and at
		// once when nothing was done or may be done twice.
		d.forget()
		if again > 0 || f.stage != unspoken && (f.stage != silent || !r.repeatable) {
			return message.Frame{}, f
		}
	}
	panic("unreachable")
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
func standby(answer message.Frame) bool {
	if answer.Header.Type != message.ResponseRC {
		return false
	}
	var rc message.RC
	return answer.Decode(&rc) == nil && (rc.Code == fault.Standby || rc.Code == fault.StandbyUseBackup)
}
