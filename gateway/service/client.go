package service

import (
	"errors"
	"io"
	"log/slog"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// A Client represents a worker that a service serves.
type Client struct {
	work.WorkerChannel // the dispatcher's data about the worker
	channel            *ipc.Channel
	dispatcher         *ipc.Channel
	reading            chan struct{} // gets an element when EachMessage is called
}

// NewClient returns a Client for the worker at the other end of channel.
// NewClient is only for tests: this Client has no channel to the dispatcher, so
// it can't report a worker that violates the protocol.
func NewClient(worker work.WorkerChannel, channel *ipc.Channel) *Client {
	return &Client{WorkerChannel: worker, channel: channel}
}

// serveClient starts s.Serve for the worker at the other end of the channel fd.
// It returns when Serve has called EachMessage or has returned. Only then does
// Run handle the dispatcher's next message. So if Serve records the worker
// before it calls EachMessage, the worker is already recorded when Run handles
// a later message about it, such as the message that the worker has exited.
func serveClient(role ipc.Role, fd int, worker *work.WorkerChannel, dispatcher *ipc.Channel, s Service) error {
	channel, err := ipc.Open(fd, role, ipc.Worker)
	if err != nil {
		return err
	}
	c := &Client{WorkerChannel: *worker, channel: channel, dispatcher: dispatcher, reading: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer channel.Close()
		s.Serve(c)
	}()
	select {
	case <-c.reading:
	case <-done:
	}
	return nil
}

// EachMessage calls handle with each message from the worker, until the channel
// is closed or the worker violates the protocol. If the worker violates the
// protocol, EachMessage reports the worker to the dispatcher. It is also a
// violation if handle returns an error, or returns false because the service
// does not handle messages of this type. EachMessage returns the violation, or
// nil if the channel was closed.
func (c *Client) EachMessage(handle func(ipc.Message) (handled bool, err error)) (violation error) {
	select {
	case c.reading <- struct{}{}:
	default: // EachMessage was called before, or c was made by NewClient
	}
	for {
		m, err := c.channel.Receive()
		if _, violated := errors.AsType[*ipc.Violation](err); violated {
			c.reportViolation(err)
			return err
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				slog.Warn("channel to a worker failed", "client", c.Number, "error", err)
			}
			return nil
		}
		handled, err := handle(m.Message)
		if !handled {
			err = ipc.Unhandled(m.Message)
		}
		if err != nil {
			c.reportViolation(err)
			return err
		}
	}
}

// Answer sends m without waiting. If the channel is full because the worker
// does not read it, the worker gets no answer.
func (c *Client) Answer(m ipc.Message) {
	if err := c.channel.TrySend(m); err != nil && !errors.Is(err, ipc.ErrFull) {
		slog.Debug("answer not sent", "client", c.Number, "error", err)
	}
}

// AnswerInTurn sends m, and waits while the channel is full. It is for services
// that answer before they read the next message, so that a worker that does not
// read its answers is not served until it does.
func (c *Client) AnswerInTurn(m ipc.Message) {
	if err := c.channel.Send(m); err != nil {
		slog.Debug("answer not sent", "client", c.Number, "error", err)
	}
}

// reportViolation asks the dispatcher to kill the worker.
func (c *Client) reportViolation(violation error) {
	slog.Error("worker violated the protocol and is no longer served", "client", c.Number, "error", violation)
	if err := c.dispatcher.Send(&work.WorkerViolation{Number: c.Number, Reason: ipc.TruncateReason(violation.Error())}); err != nil {
		slog.Warn("report not sent to the dispatcher", "client", c.Number, "error", err)
	}
}
