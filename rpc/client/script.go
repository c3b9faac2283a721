package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// BatchScript returns the script of a job, as it was submitted. The controllers give
// it to the job's user and to operators. Its errors are NotFound for a job that does
// not exist, and one with the number fault.NoScript for a job without a script.
func (c *Client) BatchScript(ctx context.Context, cred model.Credential, id uint32) (string, error) {
	var script message.BatchScript
	r := request{kind: message.RequestBatchScript, body: &message.JobInfoSingleRequest{JobID: model.Some(id)}, repeatable: true}
	err := c.query(ctx, cred, r, message.ResponseBatchScript, &script)
	return script.Text, err
}
