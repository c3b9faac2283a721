package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/message"
)

// Submit hands in a batch job, once. When it was sent and no answer came, the error's
// Code is errs.OutcomeUnknown: the job may or may not be in the queue.
func (c *Client) Submit(ctx context.Context, cred model.Credential, desc *model.JobDesc) (*model.Submitted, error) {
	var answer message.SubmitResponse
	r := request{kind: message.RequestSubmitBatchJob, body: &message.SubmitRequest{Desc: *desc}}
	if err := c.query(ctx, cred, r, message.ResponseSubmitBatchJob, &answer); err != nil {
		return nil, err
	}
	return &answer.Submitted, nil
}
