package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// exchange opens a connection to d, sends one request at version v and reads
// the answer. It checks that the answer has version v. The caller must check
// everything else, including the error number.
func (c *Client) exchange(ctx context.Context, d *daemon, v codec.Version, cred model.Credential, r request, to reception) (answer *reply, f *failure) {
	report := c.observe(r.kind)
	defer func() { report(answer, f) }()
	var cancel context.CancelFunc
	b, err := message.EncodeWithCredential(v, 0, r.kind, c.credentialFunc(ctx, d, cred), r.body)
	if err != nil {
		return nil, newFailure(stageCreate, err)
	}
	burst, err := d.burst.Acquire(ctx, holderOf(cred))
	if err != nil {
		return nil, newFailure(stageConnect, fmt.Errorf("connect to %s: %w", d.name, err))
	}
	defer burst.Release()
	nc, closeConn, f := c.connect(ctx, d, cred)
	if f != nil {
		return nil, f
	}
	if !r.repeatable {
		ctx, cancel = detach(ctx)
		defer cancel()
	}
	stop := watch(ctx, nc)
	if r.sending != nil {
		r.sending()
	}
	sent, err := nc.Write(b)
	if err != nil && ctx.Err() == nil {
		// The daemon has stopped reading. If it refused the credential before
		// the end of a long request, its answer can be read now.
		nc.SetReadDeadline(time.Now().Add(grace))
	}
	answer, f = c.receive(ctx, nc, r, to)
	if f != nil {
		if err != nil && f.stage != stageVersion {
			f = newFailure(stageSend, fmt.Errorf("send request: byte %d of %d: %w", sent, len(b), err))
		}
		stop()
		closeConn()
		return nil, f
	}
	answer.closeConn = closeConn
	f = answer.parseHeader(v)
	alive := stop()
	switch {
	case f == nil && answer.streaming && !alive:
		f = newFailure(stageReceive, fmt.Errorf("read answer: %w", context.Cause(ctx)))
	case !answer.streaming:
		closeConn()
	}
	if f != nil {
		answer.release()
		return nil, f
	}
	return answer, nil
}

// detach returns a context with the deadline of ctx that does not end when the
// client leaves. The controller may carry out a change that has been sent in any
// case, and a caller that keeps a log has to learn the outcome.
func detach(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil {
		return context.WithDeadline(context.WithoutCancel(ctx), deadline)
	}
	return ctx, func() {}
}

// grace is how long to wait for an answer after the daemon has stopped reading.
const grace = time.Second

// parseHeader parses the header of the answer to a request at version v. A
// daemon that does not support v sends "not authenticated", in a version that
// it does support.
func (a *reply) parseHeader(v codec.Version) *failure {
	f, err := message.ParsePieces(a.first, a.remaining)
	if (err == nil || errors.Is(err, message.ErrVersion)) && f.Header.Version != v {
		if f.Header.Type == message.ResponseRC {
			return &failure{stage: stageVersion, version: f.Header.Version,
				err: fmt.Errorf("protocol %d is answered in protocol %d", v, f.Header.Version)}
		}
		return newFailure(stageDecode, fmt.Errorf("answer in protocol %d to protocol %d", f.Header.Version, v))
	}
	if err != nil {
		return newFailure(stageDecode, fmt.Errorf("read answer: %w", err))
	}
	a.version, a.kind, a.first = v, f.Header.Type, f.Body
	return nil
}
