package keeper

import (
	"log/slog"
	"math/bits"
	"time"

	"schedrestd/gateway/service"
	"schedrestd/internal/limit"
	"schedrestd/internal/rate"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// client is a worker that the keeper serves.
type client struct {
	*service.Client
	keeper  *keeper
	refused uint         // number of refused signatures
	budget  *rate.Bucket // budget for questions
	body    body         // of the message to stamp; handle owns it

	creations *rate.Bucket // of gateway tokens
}

func newClient(k *keeper, c *service.Client) *client {
	return &client{Client: c, keeper: k, budget: rate.New(limit.KeeperWork, time.Now()), creations: rate.New(limit.TokenCreations, time.Now())}
}

// serve answers the worker's questions one by one, except those for which the
// resolver has to be asked. The kernel limits the number
// of questions that wait in the channel, so a worker that asks too many
// questions, or does not read its answers, fills only its own channel.
func (c *client) serve() {
	counts := &c.keeper.counts
	counts.clients.Add(1)
	defer counts.clients.Add(-1)
	if c.EachMessage(c.handle) != nil {
		counts.violations.Add(1)
	}
}

func (c *client) handle(m ipc.Message) (handled bool, err error) {
	var answer ipc.Message
	switch msg := m.(type) {
	case *query.Sign:
		p := c.keeper.pair.Load()
		c.throttle(p.cost())
		answer = c.sign(msg, p)
	case *query.Verify:
		c.throttle(verifyCost)
		answer = c.keeper.counts.countVerdict(c.keeper.verifyToken(msg))
	case *query.Exchange:
		c.throttle(exchangeCost)
		c.exchange(msg)
		return true, nil
	case *query.VouchFor:
		cost := float64(exchangeCost)
		if len(msg.RSA) > 0 {
			cost += c.keeper.provider.Load().cost()
		}
		c.throttle(cost)
		c.inBackground(func() ipc.Message { return c.keeper.vouchFor(c, msg, time.Now()) }, func() ipc.Message { return &query.VouchedFor{ID: msg.ID} })
		return true, nil
	case *query.StampPart:
		c.throttle(stampPartCost)
		return true, c.body.add(msg.Type, msg.Body)
	case *query.Stamp:
		c.throttle(exchangeCost + stampPartCost)
		err := c.body.add(msg.Type, msg.Body)
		b := c.body
		c.body = body{}
		if err == nil {
			c.inBackground(func() ipc.Message { return c.keeper.counts.countStamp(c.keeper.stamp(c, msg, &b, time.Now())) }, func() ipc.Message { return &query.Stamped{ID: msg.ID} })
		}
		return true, err
	case *query.ManageTokens:
		c.throttle(exchangeCost)
		c.manage(msg)
		return true, nil
	case *query.AskDigests:
		c.throttle(verifyCost)
		answer = c.keeper.digests(msg)
	default:
		return false, nil
	}
	c.AnswerInTurn(answer)
	return true, nil
}

// throttle delays a worker that asks too fast.
func (c *client) throttle(cost float64) {
	if wait := c.budget.Charge(time.Now(), cost); wait > 0 {
		c.keeper.counts.slowed.Add(1)
		time.Sleep(wait)
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
		slog.Warn("signature refused", "client", c.Number, "error", reason,
			"scheme", scheme(req.Scheme).String(), "bytes", len(req.Message), "refused_so_far", c.refused)
	}
}
