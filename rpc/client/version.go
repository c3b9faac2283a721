package client

import (
	"context"
	"errors"
	"fmt"

	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// speak finds out which protocol version d speaks, with a ping: the newest first, then
// downwards. It remembers what it found. The daemons have no way to negotiate;
// they refuse a version each in its own way: 22.05 closes, 24.11 answers "not
// authenticated" in its own version, 26.05 answers with HTTP text.
//
// A wrong credential is no obstacle: the refusal comes in the version of the ping.
func (c *Client) speak(ctx context.Context, d *daemon, cred model.Credential) (codec.Version, *failure) {
	if v := d.known(); v != 0 {
		return v, nil
	}
	select {
	case d.probe <- struct{}{}:
		defer func() { <-d.probe }()
	case <-ctx.Done():
		return 0, failed(unanswered, fmt.Errorf("wait for %s: %w", d.name, context.Cause(ctx)))
	}
	if v := d.known(); v != 0 {
		return v, nil // found by the probe that was waited for
	}
	return d.descend(func(v codec.Version) *failure {
		_, f := c.exchange(ctx, d, v, cred, message.RequestPing, message.Empty{})
		return f
	})
}

// descend tries versions until try succeeds with one, which is remembered.
func (d *daemon) descend(try func(codec.Version) *failure) (codec.Version, *failure) {
	var refused []error
	last := failed(silent, nil)
	for v := codec.Newest; v >= codec.Oldest; {
		f := try(v)
		if f == nil {
			d.learn(v)
			return v, nil
		}
		if f.stage != unspoken && f.stage != silent {
			return 0, f // that is no refusal of a version
		}
		if f.stage == unspoken {
			last.stage = unspoken
		}
		refused = append(refused, fmt.Errorf("protocol %d: %w", v, f))
		if f.version >= codec.Oldest && f.version < v {
			v = f.version
		} else {
			v--
		}
	}
	last.err = fmt.Errorf("%s: %w", d.name, errors.Join(refused...))
	return 0, last
}
