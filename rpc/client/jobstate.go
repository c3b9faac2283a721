package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// JobStates calls each(e) for the state e of every job in jobs, or of all jobs
// if jobs is empty. The rules for the calls are those of Nodes. For a
// controller before 23.11, JobStates returns errs.Unsupported.
func (c *Client) JobStates(ctx context.Context, cred model.Credential, jobs []model.JobSelection, each func(*model.JobStateEntry) error) error {
	req := message.JobStateRequest{Jobs: jobs}
	answer := message.JobStates{Jobs: codec.Stream[model.JobStateEntry]{Each: wrapCallback(each)}}
	r := request{kind: message.RequestJobState, body: &req, repeatable: true, list: len(jobs) == 0, since: codec.V2311}
	return c.query(ctx, cred, r, message.ResponseJobState, &answer)
}
