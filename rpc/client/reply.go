package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// A reply is a daemon's answer. It holds the first piece of the body, and a
// pieceSource that returns the other pieces.
type reply struct {
	version    codec.Version
	kind       message.Type
	first      []byte
	remaining  int         // bytes after first
	pieces     pieceSource // of the pieces after first; nil: none
	allowance  *allowance  // memory of those pieces; nil: none
	streaming  bool        // those pieces are still on the connection
	closeConn  func()      // closes the connection; used if streaming
	leaveGate  func()      // leaves the gate; nil if that has been done
	daemonKind string      // kind of daemon, for messages
	age        time.Duration
	content    *content // shared by the replies with the same content; nil for none
}

// A pieceSource returns the pieces of a message one by one. Each piece is valid
// until the next call.
type pieceSource interface {
	Next() ([]byte, error)
	Drop() // discards the other pieces
}

// decode decodes the body. A body of several pieces can be decoded only once.
func (a *reply) decode(body message.Body) error {
	return message.DecodePieces(a.version, a.kind, a.first, a.next, a.remaining, body)
}

func (a *reply) next() ([]byte, error) {
	if a.pieces == nil {
		return nil, codec.ErrShort
	}
	piece, err := a.pieces.Next()
	if err != nil {
		return nil, &callbackError{brokenOffError(a.daemonKind, err)}
	}
	return piece, nil
}

// brokenOffError returns the error for an answer that ends too early or stalls.
func brokenOffError(daemonKind string, err error) error {
	kind := errs.BadAnswer
	if isTimeout(err) {
		kind = errs.Timeout
	}
	return errs.Wrap(err, kind, "the %s's answer broke off", daemonKind)
}

// closeWhenDone ensures that the connection is closed if ctx ends while the
// answer is still being received.
func (a *reply) closeWhenDone(ctx context.Context) {
	if !a.streaming {
		return
	}
	closeConn := a.closeConn
	stop := context.AfterFunc(ctx, closeConn)
	a.closeConn = func() { stop(); closeConn() }
}

// release frees the memory of the reply, closes its connection and leaves the
// gate. It may be called twice.
func (a *reply) release() {
	if a.pieces != nil {
		a.pieces.Drop()
	}
	if a.allowance != nil {
		a.allowance.release(a.allowance.held)
	}
	if a.streaming {
		a.closeConn()
	}
	if a.leaveGate != nil {
		a.leaveGate()
	}
	*a = reply{}
}

// receive reads the answer to r from nc. It reads the whole answer, unless r is
// prompt or the answer is longer than any allowance can be.
//
// The memory for a long answer comes from allowance. If allowance is nil, a
// long answer is an error. If there is not enough memory and r can be repeated,
// receive returns a failure with the needed amount. If r can't be repeated,
// receive waits for the memory.
func (c *caller) receive(ctx context.Context, nc net.Conn, allowance *allowance, r request) (*reply, *failure) {
	n, err := wire.Length(nc, c.cfg.MaxAnswer)
	if err != nil {
		return nil, readFailure(nil, err)
	}
	if allowance == nil && n > wire.PieceSize {
		return nil, newFailure(stageDecode, fmt.Errorf("answer of %d bytes where a short one was expected", n))
	}
	first, err := wire.Fill(nc, nil, min(n, wire.PieceSize))
	if err != nil {
		return nil, readFailure(first, err)
	}
	a := &reply{first: first, remaining: n - len(first), allowance: allowance, daemonKind: c.kind}
	switch {
	case allowance == nil:
		return a, nil
	case r.prompt && a.remaining > 0:
		a.pieces, a.streaming = &streamReader{nc: nc, remaining: a.remaining, limit: min(c.cfg.Stall, c.cfg.Timeout)}, true
		return a, nil
	case a.remaining > allowance.budget.longest():
		allowance.release(allowance.held)
		a.pieces, a.streaming = &streamReader{nc: nc, remaining: a.remaining, limit: c.cfg.Stall}, true
		return a, nil
	case allowance.tryAcquire(a.remaining):
	case r.repeatable:
		return nil, &failure{needed: a.remaining, err: errors.New("no memory for the answer")}
	default:
		if err := allowance.acquire(ctx, a.remaining, true); err != nil {
			return nil, newFailure(stageReceive, err)
		}
	}
	if a.remaining == 0 {
		return a, nil
	}
	pieces, err := wire.Collect(nc, a.remaining)
	if err != nil {
		allowance.release(allowance.held)
		return nil, readFailure(first, err)
	}
	pieces.OnFree = allowance.release
	a.pieces = pieces
	return a, nil
}

// readFailure returns the failure for err, which occurred while an answer was
// being read. The bytes in first had been read before the error occurred.
func readFailure(first []byte, err error) *failure {
	f := newFailure(stageReceive, fmt.Errorf("read answer: %w", err))
	switch {
	case errors.Is(err, wire.ErrHTTP):
		f.stage = stageVersion
	case errors.Is(err, wire.ErrLength):
		f.stage = stageDecode
	case errors.Is(err, wire.ErrNoMessage), len(first) == 0 && errors.Is(err, syscall.ECONNRESET):
		f.stage = stageClosed
	}
	return f
}

// A streamReader reads the rest of an answer from the connection, without
// holding all of it in memory. It reads only as fast as the records are used;
// meanwhile the daemon waits.
type streamReader struct {
	nc        net.Conn
	remaining int
	limit     time.Duration // time limit for each piece
	piece     []byte
}

// Next reads the next piece.
func (f *streamReader) Next() ([]byte, error) {
	n := min(f.remaining, wire.PieceSize)
	if n == 0 {
		return nil, codec.ErrShort
	}
	if err := f.nc.SetReadDeadline(time.Now().Add(f.limit)); err != nil {
		return nil, err
	}
	var err error
	f.piece, err = wire.Fill(f.nc, f.piece[:0], n)
	f.remaining -= len(f.piece)
	return f.piece, err
}

// Drop does nothing, because the reply closes the connection.
func (f *streamReader) Drop() {}
