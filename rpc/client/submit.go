package client

import (
	"context"
	"errors"
	"strings"

	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// Submit hands in a batch job, once. When it was sent and no answer came, the error's
// Code is errs.OutcomeUnknown: the job may or may not be in the queue.
func (c *Client) Submit(ctx context.Context, cred model.Credential, desc *model.JobDesc) (*model.Submitted, error) {
	var answer message.SubmitResponse
	r := request{kind: message.RequestSubmitBatchJob, body: &message.SubmitRequest{Desc: *desc}}
	if err := c.query(ctx, cred, r, message.ResponseSubmitBatchJob, &answer); err != nil {
		return nil, byPolicy(err)
	}
	return &answer.Submitted, nil
}

// byPolicy blames the job when a controller gives no reason of its own: a
// site's submit policy refuses jobs so, and its text, if it has any, is meant
// for the submitting user.
func byPolicy(err error) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Number != fault.Unspecified {
		return err
	}
	refused := *e
	refused.Detail = "" // the policy's words name no field
	refused.Kind, refused.Message = errs.Invalid, "the site's submit policy refuses the job"
	if _, text, said := strings.Cut(e.Message, ": "); said {
		refused.Message = "the site's submit policy refuses: " + text
	}
	return &refused
}
