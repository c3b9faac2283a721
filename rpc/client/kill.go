package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// Kill sends a signal to the job with the given id, such as "123", "123_4" or
// "123+1". Signal 9 cancels the job.
//
// Kill never repeats the request. The controller would answer a second signal
// with "already done", and the caller would take that for the answer to the
// first.
func (c *Client) Kill(ctx context.Context, cred model.Credential, id string, signal uint16, flags model.Kill) error {
	body := &message.KillJob{JobText: id, Signal: signal, Flags: uint16(flags)}
	return c.query(ctx, cred, request{kind: message.RequestKillJob, body: body}, message.ResponseRC, nil)
}
