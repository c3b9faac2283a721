package keeper

import (
	"errors"
	"io"
	"log/slog"
	"math/bits"
	"time"

	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// client is a worker that the keeper serves.
type client struct {
	keeper  *keeper
	number  uint32 // the dispatcher's number for the worker
	channel *ipc.Channel
	refused uint         // number of refused signatures
	budget  *rate.Bucket // budget for questions
}

// admit starts to serve the worker at the other end of the channel fd.
func (k *keeper) admit(fd int, number uint32) error {
	channel, err := ipc.Open(fd, ipc.Keeper, ipc.Worker)
	if err != nil {
		return err
	}
	c := &client{keeper: k, number: number, channel: channel, budget: rate.New(budgetPerSecond, budgetPerSecond, time.Now())}
	go c.serve()
	return nil
}

// serve answers the worker's questions one by one. The kernel limits the number
// of questions that wait in the channel, so a worker that asks too many
// questions fills only its own channel. A worker that violates the protocol is
// reported to the dispatcher and gets no further answer.
func (c *client) serve() {
	defer c.channel.Close()
	counts := &c.keeper.counts
	counts.clients.Add(1)
	defer counts.clients.Add(-1)
	for {
		m, err := c.channel.Receive()
		if _, isViolation := errors.AsType[*ipc.Violation](err); isViolation {
			c.report(err.Error())
			return
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				slog.Warn("channel to a worker failed", "client", c.number, "error", err)
			}
			return
		}
		var answer ipc.Message
		switch msg := m.Message.(type) {
		case *query.Sign:
			p := c.keeper.pair.Load()
			c.throttle(p.cost())
			answer = c.sign(msg, p)
		case *query.Verify:
			c.throttle(verifyCost)
			answer = counts.countVerdict(c.keeper.verifyToken(msg))
		default:
			c.report(ipc.Unhandled(msg).Error())
			return
		}
		if err := c.channel.Send(answer); err != nil {
			return // the worker has exited
		}
	}
}

// throttle delays a worker that asks too fast.
func (c *client) throttle(cost float64) {
	if wait := c.budget.Charge(time.Now(), cost); wait > 0 {
		c.keeper.counts.slowed.Add(1)
		time.Sleep(wait)
	}
}

// report asks the dispatcher to kill the worker.
func (c *client) report(reason string) {
	c.keeper.counts.violations.Add(1)
	slog.Error("worker violated the protocol and is no longer served", "client", c.number, "error", reason)
	if err := c.keeper.channel.Send(&work.WorkerViolation{Number: c.number, Reason: ipc.TruncateReason(reason)}); err != nil {
		slog.Warn("report not sent to the dispatcher", "client", c.number, "error", err)
	}
}

// sign signs a message with p if checkMessage permits it. If no key is loaded,
// p is nil and sign refuses.
func (c *client) sign(req *query.Sign, p *pair) *query.Signed {
	a := &query.Signed{ID: req.ID}
	if p == nil {
		c.logRefusal("no key loaded", req)
		return a
	}
	if err := p.checkMessage(req.Message, scheme(req.Scheme)); err != nil {
		c.logRefusal(err.Error(), req)
		return a
	}
	signature, err := p.sign(req.Message, scheme(req.Scheme))
	if err != nil {
		c.logRefusal(err.Error(), req)
		return a
	}
	c.keeper.counts.signed.Add(1)
	a.Signature = signature
	return a
}

// logRefusal logs only the 1st, 2nd, 4th, 8th refusal and so on, because a
// compromised worker may never stop asking.
func (c *client) logRefusal(reason string, req *query.Sign) {
	c.refused++
	c.keeper.counts.unsigned.Add(1)
	if bits.OnesCount(c.refused) == 1 {
		slog.Warn("signature refused", "client", c.number, "error", reason,
			"scheme", scheme(req.Scheme).String(), "bytes", len(req.Message), "refused_so_far", c.refused)
	}
}
