package client

import (
	"context"

	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// JobStates calls each(e) with the state e of every given job, or of all jobs
// if none are given, like Nodes. It returns errs.Unsupported for a controller
// before 23.11.
func (c *Client) JobStates(ctx context.Context, cred model.Credential, jobs []model.JobSelection, each func(*model.JobStateEntry) error) error {
	req := message.JobStateRequest{Jobs: jobs}
	answer := message.JobStates{Jobs: codec.Stream[model.JobStateEntry]{Each: pass(each)}}
	r := request{kind: message.RequestJobState, body: &req, repeatable: true, list: len(jobs) == 0, since: codec.V2311}
	return c.query(ctx, cred, r, message.ResponseJobState, &answer)
}
