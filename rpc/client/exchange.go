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
// the answer. It only detects whether d speaks v. The caller must examine the
// answer, including its error number.
func (c *Client) exchange(ctx context.Context, d *daemon, v codec.Version, cred model.Credential, r request, allowance *allowance) (answer *reply, f *failure) {
	observed := c.begin(r.kind)
	defer func() { observed(answer, f) }()
	b, err := message.EncodeSealed(v, 0, r.kind, c.seal(ctx, d, cred), r.body)
	if err != nil {
		return nil, failed(unmade, err)
	}
	nc, done, err := c.connect(ctx, d, cred)
	if err != nil {
		return nil, failed(unreached, fmt.Errorf("connect to %s: %w", d.name, err))
	}
	stop := watch(ctx, nc)
	sent, err := nc.Write(b)
	if err != nil && ctx.Err() == nil {
		// The daemon stopped reading. If it refused the credential before it
		// had read all of a long request, its answer can be read now.
		nc.SetReadDeadline(time.Now().Add(grace))
	}
	answer, f = c.receive(ctx, nc, allowance, r)
	if f == nil {
		if f = answer.open(v); f != nil && answer.rest != nil {
			answer.rest.Drop()
		}
	} else if err != nil && f.stage != unspoken {
		f = failed(unsent, fmt.Errorf("send request: byte %d of %d: %w", sent, len(b), err))
	}
	switch whole := stop(); {
	case f == nil && !answer.flowing:
		done()
		return answer, nil
	case f == nil && whole:
		answer.done = done
		return answer, nil
	case f == nil:
		f = failed(unanswered, fmt.Errorf("read answer: %w", context.Cause(ctx)))
	}
	done()
	return nil, f
}

// grace is the time to wait for an answer after the daemon stopped reading.
const grace = time.Second

// open parses the header of the answer to a request at version v. A daemon that
// does not speak v answers "not authenticated" in a version of its own.
func (a *reply) open(v codec.Version) *failure {
	f, err := message.ParsePieces(a.first, a.later)
	if (err == nil || errors.Is(err, message.ErrVersion)) && f.Header.Version != v {
		if f.Header.Type == message.ResponseRC {
			return &failure{stage: unspoken, version: f.Header.Version,
				err: fmt.Errorf("protocol %d is answered in protocol %d", v, f.Header.Version)}
		}
		return failed(garbled, fmt.Errorf("answer in protocol %d to protocol %d", f.Header.Version, v))
	}
	if err != nil {
		return failed(garbled, fmt.Errorf("read answer: %w", err))
	}
	a.version, a.kind, a.first = v, f.Header.Type, f.Body
	return nil
}
