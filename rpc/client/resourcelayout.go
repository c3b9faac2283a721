package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// ResourceLayout returns the resources that a job has on each of its nodes. A
// job without an allocation has none. For a controller before 25.11,
// ResourceLayout returns errs.Unsupported.
func (c *Client) ResourceLayout(ctx context.Context, cred model.Credential, id uint32) ([]model.ResourceLayout, error) {
	var layout message.ResourceLayout
	r := request{kind: message.RequestResourceLayout, body: &message.JobInfoSingleRequest{JobID: model.Some(id)}, repeatable: true, since: codec.V2511}
	err := c.answerTo(ctx, cred, r, func(answer *reply) error {
		if answer.kind == message.ResponseResourceLayout && len(answer.first)+answer.remaining == 0 {
			return nil
		}
		return c.daemons.read(answer, message.ResponseResourceLayout, &layout)
	})
	return layout.Nodes, err
}
