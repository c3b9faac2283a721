package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// Priorities calls each(p) for the priority p of every waiting job that has one,
// in each of its partitions and qualities of service. The rules for the calls are
// those of Nodes. For a controller before 23.02, Priorities returns
// errs.Unsupported.
func (c *Client) Priorities(ctx context.Context, cred model.Credential, each func(*model.JobPriority) error) error {
	answer := message.Priorities{Jobs: codec.Stream[model.JobPriority]{Each: wrapCallback(each)}}
	r := request{kind: message.RequestPriorities, body: message.Empty{}, repeatable: true, list: true, since: codec.V2302}
	return c.query(ctx, cred, r, message.ResponsePriorities, &answer)
}
