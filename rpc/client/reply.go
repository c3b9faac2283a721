package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/tlsconn"
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
	streaming  bool        // some of those pieces are still on the connection
	closeConn  func()      // closes the connection; used if streaming
	place      *place      // in the gate; nil if not streaming
	daemonKind string      // kind of daemon, for messages
	age        time.Duration
	sent       time.Time    // when it was requested, if the request has a dated body; an answer that has not changed is older than age
	pings      []model.Ping // the answer is these results instead of a message; nil otherwise
	content    *content     // shared by the replies with the same content; nil for none
	released   func()       // called by release; nil for none
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
	if s, ok := a.pieces.(*streamReader); ok && s.unread == 0 && a.streaming {
		a.streaming = false
		a.closeConn()
		a.place.leave()
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
	if a.streaming {
		a.closeConn()
	}
	a.place.leave()
	if a.released != nil {
		a.released()
	}
	*a = reply{}
}

// A reception is what a request has for its answer.
type reception struct {
	allowance *Allowance // memory for a long answer; if it is nil, such an answer is an error

	// place is the request's place in the gate. An answer on the connection needs
	// one. The reply takes it, or one for which receive waits if place is nil.
	place *place
}

// receive reads the answer to r from nc.
//
// If there is not enough memory, the rest of the answer stays on the connection,
// and is read only as fast as the records are used. Meanwhile the daemon waits.
// The same happens if the answer arrives so slowly that it takes half of the
// remaining time, and to every answer to a prompt request. A whole answer is
// never left on the connection: if there is no memory for it, it is an error.
func (c *caller) receive(ctx context.Context, nc net.Conn, r request, to reception) (*reply, *failure) {
	allowance, p := to.allowance, to.place
	n, err := wire.Length(nc, c.cfg.MaxAnswer)
	if r.began != nil {
		r.began()
	}
	if err != nil {
		return nil, c.lengthFailure(r, err)
	}
	if allowance == nil && n > wire.PieceSize {
		return nil, newFailure(stageDecode, fmt.Errorf("answer of %d bytes where a short one was expected", n))
	}
	first, err := wire.Fill(nc, nil, min(n, wire.PieceSize))
	if err != nil {
		return nil, c.readFailure(first, err)
	}
	a := &reply{first: first, remaining: n - len(first), daemonKind: c.kind}
	if a.remaining == 0 {
		return a, nil
	}
	half, cancel := halveDeadline(ctx, !r.whole)
	defer cancel()
	allowance.short = allowance.budget.short(a.remaining)
	stored, unread, err := wire.Collect(nc, a.remaining, func(n int) bool {
		return !r.prompt && half.Err() == nil && allowance.acquire(n)
	}, allowance.Shrink)
	if err != nil {
		return nil, c.readFailure(first, err)
	}
	if a.pieces = stored; unread == 0 {
		return a, nil
	}
	if r.whole {
		stored.Drop()
		return nil, &failure{stage: stageReceive, final: true, err: errs.New(errs.Unavailable, "server busy: memory limit for long answers reached")}
	}
	stall := c.cfg.Stall
	switch {
	case r.prompt:
		stall = min(stall, c.cfg.Timeout)
	case p != nil:
		p.stream()
	}
	if p == nil {
		limited, cancel := c.limit(ctx)
		defer cancel()
		if p, err = c.gate.enter(limited, allowance.holder, true); err != nil {
			stored.Drop()
			return nil, &failure{stage: stageReceive, final: true, err: err}
		}
	}
	more := func(n int) bool { return !r.prompt && allowance.acquire(n) }
	a.pieces, a.streaming, a.place = &streamReader{stored: stored, nc: nc, unread: unread, limit: stall, reserve: more, free: allowance.Shrink}, true, p
	return a, nil
}

// lengthFailure returns the failure for an error of wire.Length.
func (c *caller) lengthFailure(r request, err error) *failure {
	long, ok := errors.AsType[wire.LengthError](err)
	if !ok {
		return c.readFailure(nil, err)
	}
	e := errs.New(errs.BadAnswer, "the %s's answer has %d bytes; the limit of the protocol is %d", c.kind, long.Length, long.Limit)
	switch r.kind {
	case message.RequestJobInfo, message.RequestJobUserInfo:
		e = e.WithHint("still available: one job, the states of all jobs (jobs/state), and the jobs of one user (users=NAME)")
	case message.RequestNodeInfo:
		e = e.WithHint("still available: one node")
	}
	return &failure{stage: stageDecode, final: true, err: e}
}

// readFailure returns the failure for err, which occurred while an answer was
// being read. The bytes in first had been read before the error occurred.
func (c *caller) readFailure(first []byte, err error) *failure {
	f := newFailure(stageReceive, fmt.Errorf("read answer: %w", err))
	switch {
	case errors.Is(err, wire.ErrHTTP):
		f.stage = stageVersion
	case errors.Is(err, wire.ErrTLS):
		e := errs.New(errs.Unavailable, "the %s requires TLS (TLSType=tls/s2n)", c.kind).
			WithHint("%s", fault.TLSHint)
		e.Err = err
		return newFailure(stageSend, e)
	case errors.Is(err, wire.ErrNoMessage), len(first) == 0 && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, tlsconn.ErrCutOff)):
		f.stage = stageClosed
	}
	return f
}

// A streamReader returns the pieces of an answer of which only the beginning is
// in memory. It reads the rest from the connection, only as fast as the records
// are used, unless more memory has become free.
type streamReader struct {
	stored  *wire.Pieces
	nc      net.Conn
	unread  int           // bytes on the connection
	limit   time.Duration // time limit for each piece
	due     int           // bytes of the current piece that must arrive within the limit
	piece   []byte
	reserve func(n int) bool // as for wire.Collect
	free    func(n int)
}

// Next returns the next piece.
func (f *streamReader) Next() ([]byte, error) {
	piece, err := f.stored.Next()
	if err != io.EOF {
		return piece, err
	}
	if f.unread == 0 {
		return nil, codec.ErrShort
	}
	if f.stored, f.unread, err = wire.Collect(f, f.unread, f.reserve, f.free); err != nil {
		f.stored = new(wire.Pieces)
		return nil, err
	}
	if piece, err := f.stored.Next(); err != io.EOF {
		return piece, err
	}
	f.piece, err = wire.Fill(f, f.piece[:0], min(f.unread, wire.PieceSize))
	f.unread -= len(f.piece)
	return f.piece, err
}

// Read reads from the connection. Its callers read one piece after the other.
func (f *streamReader) Read(b []byte) (int, error) {
	if f.due == 0 {
		if err := f.nc.SetReadDeadline(time.Now().Add(f.limit)); err != nil {
			return 0, err
		}
		f.due = wire.PieceSize
	}
	n, err := f.nc.Read(b[:min(len(b), f.due)])
	f.due -= n
	return n, err
}

// Drop frees the memory. The reply closes the connection.
func (f *streamReader) Drop() { f.stored.Drop() }
