package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// KillJobs sends a signal to the jobs that k says, and gives what became of each to each, as
// Nodes does: without model.KillVerbose of those alone that failed. It is not sent twice, as
// Kill. errs.Unsupported, with nothing sent, from a controller before 24.05.
func (c *Client) KillJobs(ctx context.Context, cred model.Credential, k *model.KillJobs, each func(*model.KillResult) error) error {
	answer := message.KillJobsResponse{Jobs: codec.Stream[model.KillResult]{Each: pass(each)}}
	r := request{kind: message.RequestKillJobs, body: &message.KillJobs{KillJobs: *k}, since: codec.V2405}
	return c.query(ctx, cred, r, message.ResponseKillJobs, &answer)
}
