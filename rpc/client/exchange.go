package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// exchange sends one request to d at version v and reads the answer: a connection for
// it alone. What the answer says, also an error number, is the caller's to judge,
// but for "I don't speak this version".
func (c *Client) exchange(ctx context.Context, d *daemon, v codec.Version, cred model.Credential, t message.Type, body message.Body) (message.Frame, *failure) {
	b, err := message.EncodeSealed(v, 0, t, c.seal(ctx, d, cred), body)
	if err != nil {
		return message.Frame{}, failed(unreached, err)
	}
	nc, release, err := c.dial(ctx, d, cred)
	if err != nil {
		return message.Frame{}, failed(unreached, fmt.Errorf("connect to %s: %w", d.name, err))
	}
	defer release()
	sent, err := nc.Write(b)
	if err != nil && ctx.Err() == nil {
		// The daemon stopped reading, perhaps because it has refused the credential
		// before the rest of a long request: then its answer is here.
		nc.SetReadDeadline(time.Now().Add(grace))
	}
	answer, f := c.receive(nc)
	switch {
	case f == nil:
		return readFrame(answer, v)
	case err != nil && f.stage != unspoken:
		f = failed(unsent, fmt.Errorf("send request: byte %d of %d: %w", sent, len(b), err))
	}
	return message.Frame{}, f
}

// grace is how long an answer is waited for after the daemon stopped reading.
const grace = time.Second

// receive reads a whole message.
func (c *caller) receive(nc net.Conn) ([]byte, *failure) {
	b, err := wire.Read(nc, c.cfg.MaxAnswer)
	switch {
	case err == nil:
		return b, nil
	case errors.Is(err, wire.ErrHTTP):
		return nil, failed(unspoken, fmt.Errorf("read answer: %w", err))
	case errors.Is(err, wire.ErrLength):
		return nil, failed(garbled, fmt.Errorf("read answer: %w", err))
	case errors.Is(err, wire.ErrNone), len(b) == 0 && errors.Is(err, syscall.ECONNRESET):
		return nil, failed(silent, fmt.Errorf("read answer: %w", err))
	}
	return nil, failed(unanswered, fmt.Errorf("read answer: %w", err))
}

// readFrame takes an answer to a request at version v apart. A daemon that does not
// speak v says "not authenticated" in a version of its own.
func readFrame(b []byte, v codec.Version) (message.Frame, *failure) {
	f, err := message.ParseFrame(b)
	if (err == nil || errors.Is(err, message.ErrVersion)) && f.Header.Version != v {
		if f.Header.Type == message.ResponseRC {
			return f, &failure{stage: unspoken, version: f.Header.Version,
				err: fmt.Errorf("protocol %d is answered in protocol %d", v, f.Header.Version)}
		}
		return f, failed(garbled, fmt.Errorf("answer in protocol %d to protocol %d", f.Header.Version, v))
	}
	if err != nil {
		return f, failed(garbled, fmt.Errorf("read answer: %w", err))
	}
	return f, nil
}
