package service

import (
	"errors"
	"io"
	"log/slog"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// Client is a worker that a service serves.
type Client struct {
	work.Client // the dispatcher's data about the worker
	channel     *ipc.Channel
	parent      *ipc.Channel
}

// NewClient returns a Client for the worker at the other end of channel. It is
// only for tests: the Client lacks a second channel, the one to the dispatcher,
// and so can't report a worker that violates the protocol.
func NewClient(about work.Client, channel *ipc.Channel) *Client {
	return &Client{Client: about, channel: channel}
}

// admit makes s serve the worker at the other end of the channel fd.
func admit(role ipc.Role, fd int, about *work.Client, parent *ipc.Channel, s Service) error {
	channel, err := ipc.Open(fd, role, ipc.Worker)
	if err != nil {
		return err
	}
	c := &Client{Client: *about, channel: channel, parent: parent}
	go func() {
		defer channel.Close()
		s.Serve(c)
	}()
	return nil
}

// Each calls handle with each message of the worker, until the channel closes
// or handle returns an error. If handle returns an error, or the worker
// violates the protocol, Each reports the worker to the dispatcher. The result
// done of handle must be false if the service does not handle this kind of
// message; this counts as a violation too.
func (c *Client) Each(handle func(ipc.Message) (done bool, err error)) {
	for {
		m, err := c.channel.Receive()
		if _, bad := errors.AsType[*ipc.Violation](err); bad {
			c.report(err)
			return
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				slog.Warn("channel to a worker failed", "client", c.Number, "error", err)
			}
			return
		}
		done, err := handle(m.Message)
		if !done {
			err = ipc.Unheard(m)
		}
		if err != nil {
			c.report(err)
			return
		}
	}
}

// Answer sends m if the channel has space. A worker that does not read its
// channel gets no answer.
func (c *Client) Answer(m ipc.Message) {
	if err := c.channel.TrySend(m); err != nil && !errors.Is(err, ipc.ErrFull) {
		slog.Debug("answer not sent", "client", c.Number, "error", err)
	}
}

// report asks the dispatcher to have the worker killed.
func (c *Client) report(why error) {
	slog.Error("worker violated the protocol and is no longer served", "client", c.Number, "because", why)
	if err := c.parent.Send(&work.Breach{Number: c.Number, Reason: ipc.Refuse(why.Error()).Reason}); err != nil {
		slog.Warn("report not sent to the parent", "client", c.Number, "error", err)
	}
}
