package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"schedrestd/errs"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// reply is an answer: the first piece of its body, and the source of the other
// pieces.
type reply struct {
	version   codec.Version
	kind      message.Type
	first     []byte
	later     int        // bytes behind first
	rest      source     // nil: no more pieces
	allowance *allowance // memory of the rest; nil: no rest
	flowing   bool       // the rest is still on the connection
	done      func()     // flowing: closes the connection
	leave     func()     // leaves the gate; nil if that has been done
	what      string     // the kind of daemon, for messages
}

// source returns the pieces of a message one by one. A piece is valid until the
// next call.
type source interface {
	Next() ([]byte, error)
	Drop() // discards the other pieces
}

// decode decodes the body. It can be called only once, unless the body is a
// single piece.
func (a *reply) decode(body message.Body) error {
	return message.DecodePieces(a.version, a.kind, a.first, a.next, a.later, body)
}

func (a *reply) next() ([]byte, error) {
	if a.rest == nil {
		return nil, codec.ErrShort
	}
	piece, err := a.rest.Next()
	if err != nil {
		return nil, &stopped{brokenOff(a.what, err)}
	}
	return piece, nil
}

// brokenOff returns the error for an answer that ends too early or stalls.
func brokenOff(what string, err error) error {
	kind := errs.BadAnswer
	if late(err) {
		kind = errs.Timeout
	}
	return errs.Wrap(err, kind, "the %s's answer broke off", what)
}

// follow closes the connection of a reply when ctx ends, if the reply is still
// being received.
func (a *reply) follow(ctx context.Context) {
	if !a.flowing {
		return
	}
	done := a.done
	stop := context.AfterFunc(ctx, done)
	a.done = func() { stop(); done() }
}

// release frees the memory and the connection of the reply. It may be called
// twice.
func (a *reply) release() {
	if a.rest != nil {
		a.rest.Drop()
	}
	if a.allowance != nil {
		a.allowance.less(a.allowance.has)
	}
	if a.flowing {
		a.done()
	}
	if a.leave != nil {
		a.leave()
	}
	*a = reply{}
}

// receive reads the answer to r from nc. It reads the whole answer, except if r
// is prompt or the answer is longer than any allowance can be. A long answer
// gets its memory from allowance. If there is not enough memory, receive
// normally returns a failure with the needed amount. If r can't be repeated,
// receive waits for memory instead. With a nil allowance a long answer is an
// error. If reading fails, receive frees the memory.
func (c *caller) receive(ctx context.Context, nc net.Conn, allowance *allowance, r request) (*reply, *failure) {
	n, err := wire.Length(nc, c.cfg.MaxAnswer)
	if err != nil {
		return nil, unread(nil, err)
	}
	if allowance == nil && n > wire.PieceSize {
		return nil, failed(garbled, fmt.Errorf("an answer of %d bytes to a short question", n))
	}
	first, err := wire.Fill(nc, nil, min(n, wire.PieceSize))
	if err != nil {
		return nil, unread(first, err)
	}
	a := &reply{first: first, later: n - len(first), allowance: allowance, what: c.what}
	switch {
	case allowance == nil:
		return a, nil
	case r.prompt && a.later > 0:
		a.rest, a.flowing = &flow{nc: nc, left: a.later, limit: min(c.cfg.Stall, c.cfg.Timeout)}, true
		return a, nil
	case a.later > allowance.budget.longest():
		allowance.less(allowance.has)
		a.rest, a.flowing = &flow{nc: nc, left: a.later, limit: c.cfg.Stall}, true
		return a, nil
	case allowance.set(a.later):
	case r.repeatable:
		return nil, &failure{wants: a.later, err: errors.New("no room for the answer")}
	default:
		if err := allowance.wait(ctx, a.later, true); err != nil {
			return nil, failed(unanswered, err)
		}
	}
	if a.later == 0 {
		return a, nil
	}
	rest, err := wire.Collect(nc, a.later)
	if err != nil {
		allowance.less(allowance.has)
		return nil, unread(first, err)
	}
	rest.Gone = allowance.less
	a.rest = rest
	return a, nil
}

// unread returns the failure for err. The argument first is the part of the
// answer that was read before the error.
func unread(first []byte, err error) *failure {
	f := failed(unanswered, fmt.Errorf("read answer: %w", err))
	switch {
	case errors.Is(err, wire.ErrHTTP):
		f.stage = unspoken
	case errors.Is(err, wire.ErrLength):
		f.stage = garbled
	case errors.Is(err, wire.ErrNone), len(first) == 0 && errors.Is(err, syscall.ECONNRESET):
		f.stage = silent
	}
	return f
}

// flow is the rest of an answer that is longer than any allowance, or whose
// request is prompt. It is read only as fast as its records are used, and
// meanwhile the daemon waits.
type flow struct {
	nc    net.Conn
	left  int
	limit time.Duration // time limit for each piece
	piece []byte
}

// Next reads the next piece.
func (f *flow) Next() ([]byte, error) {
	n := min(f.left, wire.PieceSize)
	if n == 0 {
		return nil, codec.ErrShort
	}
	if err := f.nc.SetReadDeadline(time.Now().Add(f.limit)); err != nil {
		return nil, err
	}
	var err error
	f.piece, err = wire.Fill(f.nc, f.piece[:0], n)
	f.left -= len(f.piece)
	return f.piece, err
}

// Drop does nothing, because the reply closes the connection.
func (f *flow) Drop() {}
