package keeper

import (
	"errors"
	"io"
	"log/slog"
	"math/bits"

	"schedrestd/ipc"
)

// client is one worker.
type client struct {
	keeper  *keeper
	number  uint32 // the parent's for the worker
	channel *ipc.Channel
	refused uint // what was not signed
}

// admit serves the worker behind fd from now on.
func (k *keeper) admit(fd int, number uint32) error {
	channel, err := ipc.Open(fd, ipc.Keeper, ipc.Worker)
	if err != nil {
		return err
	}
	c := &client{keeper: k, number: number, channel: channel}
	go c.serve()
	return nil
}

// serve answers one question after the other. What waits is in the channel, and the kernel bounds
// that: a worker that asks for more than is signed fills its own channel and takes nothing from the
// others. One that breaks the book is not answered again; without a channel it has
// no handshakes to offer.
func (c *client) serve() {
	defer c.channel.Close()
	for {
		m, err := c.channel.Receive()
		if _, bad := errors.AsType[*ipc.Violation](err); bad {
			slog.Error("a worker is not served any more: it broke the book", "client", c.number, "because", err)
			return
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				slog.Warn("a worker can't be heard", "client", c.number, "error", err)
			}
			return
		}
		var answer ipc.Message
		switch want := m.Message.(type) {
		case *ipc.Sign:
			answer = c.answer(want)
		case *ipc.Verify:
			answer = c.keeper.judge(want)
		default:
			slog.Error("a worker is not served any more: nobody reads that here", "client", c.number, "kind", m.Kind().String())
			return
		}
		if err := c.channel.Send(answer); err != nil {
			return // it is gone
		}
	}
}

// answer signs what it may.
func (c *client) answer(want *ipc.Sign) *ipc.Signed {
	a := &ipc.Signed{ID: want.ID}
	p := c.keeper.find(want.Key)
	if p == nil {
		c.refuse("no such key is kept", want)
		return a
	}
	if err := p.judge(want.Message, scheme(want.Scheme)); err != nil {
		c.refuse(err.Error(), want)
		return a
	}
	signature, err := p.sign(want.Message, scheme(want.Scheme))
	if err != nil {
		c.refuse(err.Error(), want)
		return a
	}
	a.Signature = signature
	return a
}

// refuse logs what was not signed, the first, the second, the fourth and so on: a captured worker
// may ask without end.
func (c *client) refuse(why string, want *ipc.Sign) {
	c.refused++
	if bits.OnesCount(c.refused) == 1 {
		slog.Warn("a worker asks for what is not signed", "client", c.number, "because", why, "key", want.Key,
			"scheme", scheme(want.Scheme).String(), "bytes", len(want.Message), "refused_so_far", c.refused)
	}
}
