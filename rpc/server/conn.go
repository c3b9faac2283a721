package server

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"schedrestd/become"
	"schedrestd/internal/errs"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/tlsconn"
	"schedrestd/rpc/wire"
)

// conn is a connection of a client.
type conn struct {
	server       *Server
	nc           net.Conn
	local        bool         // on a UNIX socket
	peer         become.Ucred // client process, if local
	hasOrigin    bool         // cachedOrigin is set
	cachedOrigin source
	readAhead    []byte // bytes that were read while an earlier request was being answered

	// server.mu guards the fields below.
	pool      *pool
	counts    *connQueue // the queue of the pool in which it counts
	source    source     // source that the connection counts for: addrSource, origin, or the credential's user
	busy      bool       // a complete request is being answered
	closing   bool       // no further request is accepted
	isEvicted bool       // it was ended to make room for another connection
}

// serve serves c until the connection ends. If a handler panics, only this
// connection is closed. Its client gets no answer, because it is unknown
// whether the request was executed.
func (c *conn) serve() {
	defer func() {
		if p := recover(); p != nil {
			c.server.log().Error("panic in a handler", "peer", c.peerName(), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	switch err := c.exchange(); {
	case c.evicted():
		c.logLimited(slog.LevelInfo, "silent connection closed to make room")
	case err == nil, errors.Is(err, wire.ErrNoMessage), errors.Is(err, net.ErrClosed), errors.Is(err, errClosed):
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, tlsconn.ErrCutOff): // many clients close a connection this way
		c.logLimited(slog.LevelDebug, "connection ended", "error", err)
	default:
		c.logLimited(slog.LevelInfo, "connection ended", "error", err)
	}
}

// exchange reads the beginning of the first message, and calls the function for
// the client's protocol. The first two bytes show which protocol it is. They
// are either a version (at least 0x2600), or the type of the message that opens
// a persistent connection.
func (c *conn) exchange() error {
	if !c.setReadTimeout(cmp.Or(c.server.FrontTimeout, defaultFrontTimeout)) {
		return errClosed
	}
	c.nc.SetWriteDeadline(time.Now().Add(cmp.Or(c.server.FrontTimeout, defaultFrontTimeout))) // the first Read may write a TLS handshake
	n, err := wire.Length(c.nc, cmp.Or(c.server.MaxRequest, defaultMaxRequest))
	if errors.Is(err, wire.ErrTLS) {
		err = errs.Wrap(err, errs.Unsupported, "the client speaks TLS, and this daemon has no TLSType=tls/s2n")
	}
	if err != nil {
		return err
	}
	front, err := wire.Fill(c.nc, nil, min(n, maxFront))
	if err != nil {
		return err
	}
	if len(front) >= 2 && message.Type(binary.BigEndian.Uint16(front)) == message.RequestPersistInit {
		if c.server.Persistent == nil || n > maxFront {
			return errs.New(errs.Unsupported, "persistent connections are not supported")
		}
		return c.servePersistent(front[2:])
	}
	return c.serveSingle(front, n)
}

// serveSingle handles the controller's protocol, in which a connection carries
// one request and one answer. The argument front is the beginning of the
// message, which has n bytes in total.
func (c *conn) serveSingle(front []byte, n int) error {
	f, err := message.ParseFront(front)
	v := f.Header.Version
	switch {
	case errors.Is(err, message.ErrVersion), err == nil && (v < c.server.oldest() || v > c.server.newest()):
		// Send the answer in a version that this server supports, so that the
		// client learns which version it can use. slurmctld 24.11 does the
		// same.
		f.Header.Version, f.Credential.Plugin = c.server.newest(), message.PluginNone
		defer c.linger(n - len(front))
		return c.answer(f, message.ResponseRC, &message.RC{Code: fault.Authentication})
	case err != nil:
		return err
	case n-len(front)+len(f.Body) != int(f.Header.BodyLength):
		return message.ErrBodyLength
	}
	id, err := c.identify(f.Credential)
	if err != nil {
		c.logLimited(slog.LevelInfo, "credential refused", "request", f.Header.Type, "error", err)
		defer c.linger(n - len(front))
		return c.answerError(f, err)
	}
	var release func()
	if err = c.server.assignUser(c, id); err == nil {
		release, err = c.reserveMemory(f.Header.Type, id, int(f.Header.BodyLength))
	}
	if err != nil {
		defer c.linger(n - len(front))
		return c.answerError(f, err)
	}
	defer release()
	if !c.setReadTimeout(cmp.Or(c.server.BodyTimeout, defaultBodyTimeout)) {
		return errClosed
	}
	body, err := wire.Fill(yielding{c.nc}, f.Body, int(f.Header.BodyLength))
	if err != nil {
		return err
	}
	if !c.beginRequest() {
		return errClosed
	}
	r := &Request{Type: f.Header.Type, Version: v, Identity: id, Peer: c.peerName(), server: c.server, body: body,
		front: func(t message.Type, n int) ([]byte, error) { return message.Front(v, 0, t, answerCredential(f), n) }}
	ctx, stop := c.watchHangup(c.server.ctx)
	t, answer, err := c.handle(ctx, c.server.Handlers, r)
	stop()
	if isUnknown(err) {
		return err
	}
	if err != nil {
		return c.answerError(f, err)
	}
	return c.answer(f, t, answer)
}

// reserveMemory reserves memory for a request of n bytes and type t from id.
// The caller must call release.
func (c *conn) reserveMemory(t message.Type, id Identity, n int) (release func(), err error) {
	limit := MaxSmall
	if c.server.Limit != nil {
		limit = c.server.Limit(t, id)
	}
	if n > limit {
		return nil, errs.New(errs.TooLarge, "the request has %d bytes; at most %d are accepted", n, limit)
	}
	r := c.server.requestBudget.reservation(id.UID)
	return r.Release, r.grow(n)
}

func (c *conn) handle(ctx context.Context, handlers map[message.Type]Handler, r *Request) (message.Type, message.Body, error) {
	h, ok := handlers[r.Type]
	if !ok {
		e := fault.Of(fault.UnexpectedMessage, "")
		e.Err = fmt.Errorf("message %d", r.Type) // for the log
		return 0, nil, e
	}
	return h(ctx, r)
}

// isUnknown reports whether err means that a request may have been carried out.
func isUnknown(err error) bool {
	e, ok := errors.AsType[*errs.Error](err)
	return ok && e.Code == errs.OutcomeUnknown
}

// answer sends body as the answer to f, in the same protocol version as f.
func (c *conn) answer(f message.Frame, t message.Type, body message.Body) error {
	if long, ok := body.(*spool); ok {
		return c.sendSpool(long)
	}
	b, err := message.Encode(f.Header.Version, 0, t, answerCredential(f), body)
	if err != nil {
		return err
	}
	return c.write(b)
}

// answerCredential returns the credential for an answer to f. From protocol 39
// on, answers contain no credential. In older protocols, they contain an empty
// credential, for the same plugin as that of the request.
func answerCredential(f message.Frame) *message.Credential {
	if f.Header.Version >= codec.V2302 {
		return nil
	}
	return &message.Credential{Plugin: f.Credential.Plugin}
}

// answerError sends the error number of err as the answer to f. Clients
// understand a text only in the answer to a submission, or to a dry run of one, so
// only these answers also contain the text of err.
func (c *conn) answerError(f message.Frame, err error) error {
	number, text := fault.Number(err)
	if number == fault.Internal {
		c.server.log().Error("request failed", "peer", c.peerName(), "request", f.Header.Type, "error", err)
	}
	submits := f.Header.Type == message.RequestSubmitBatchJob || f.Header.Type == message.RequestEstimate
	if submits && text != "" && number != fault.Authentication {
		return c.answer(f, message.ResponseRCMessage, &message.RCMessage{Code: number, Message: text})
	}
	return c.answer(f, message.ResponseRC, &message.RC{Code: number})
}

// linger reads and discards the n remaining bytes of the peer's message. If the
// connection were closed before these bytes are read, the kernel would reset
// it, and the peer might lose the answer.
func (c *conn) linger(n int) {
	if n > 0 && c.setReadTimeout(lingerTimeout) {
		io.CopyN(io.Discard, yielding{c}, int64(n))
	}
}

// A yielding reader lets other goroutines run after each read. Without it, a
// client that always has more to send would keep a processor for a whole time
// slice of Go's scheduler. A few hundred such clients would delay all others by
// a second.
type yielding struct{ io.Reader }

func (y yielding) Read(b []byte) (int, error) {
	defer runtime.Gosched()
	return y.Reader.Read(b)
}

func (c *conn) write(b []byte) error {
	c.nc.SetWriteDeadline(time.Now().Add(cmp.Or(c.server.WriteTimeout, defaultWriteTimeout)))
	_, err := c.nc.Write(b)
	return err
}

// setReadTimeout sets the deadline for the next read. If c is closing, it does
// nothing and returns false.
func (c *conn) setReadTimeout(d time.Duration) bool {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.closing {
		return false
	}
	c.nc.SetReadDeadline(time.Now().Add(d))
	return true
}

// beginRequest marks c as busy. If c is closing, it does nothing and returns
// false.
func (c *conn) beginRequest() bool {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.busy = !c.closing; c.busy {
		c.counts.Remove(c.source, c)
	}
	return c.busy
}

// endRequest marks c as not busy. If no further request is accepted, it returns
// false.
func (c *conn) endRequest() bool {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.busy = false
	if !c.isEvicted {
		c.counts.Remove(c.source, c)
		c.counts.Push(c.source, c)
	}
	c.pool.signal()
	return !c.closing
}

// interruptLocked makes the goroutine of c end. If c is busy with a request,
// the goroutine answers that request first. interruptLocked does not close the
// connection itself, because closing may take time.
func (c *conn) interruptLocked() {
	c.closing = true
	if !c.busy {
		c.nc.SetReadDeadline(time.Unix(1, 0))
	}
}

func (c *conn) evicted() bool {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	return c.isEvicted
}
