package client

import (
	"context"

	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// Jobs gives each job to each, as Nodes does.
func (c *Client) Jobs(ctx context.Context, cred Credential, req message.JobInfoRequest, each func(*model.Job) error) (model.JobTimes, error) {
	answer := message.JobInfo{Jobs: codec.Stream[model.Job]{Each: pass(each)}}
	err := c.query(ctx, cred, request{kind: message.RequestJobInfo, body: &req, repeatable: true}, message.ResponseJobInfo, &answer)
	return model.JobTimes{LastUpdate: answer.LastUpdate, LastBackfill: answer.LastBackfill}, err
}

// Job is the job with that id: several when it is an array or heterogeneous, never
// none; errs.NotFound when there is none. flags are Show… bits of package message.
func (c *Client) Job(ctx context.Context, cred Credential, id uint32, flags uint16) ([]model.Job, model.JobTimes, error) {
	var answer message.JobInfo
	req := message.JobInfoSingleRequest{JobID: model.Some(id), ShowFlags: flags}
	err := c.query(ctx, cred, request{kind: message.RequestJobInfoSingle, body: &req, repeatable: true}, message.ResponseJobInfo, &answer)
	if err == nil && len(answer.Jobs.List) == 0 || numberOf(err) == fault.InvalidJobID {
		missing := errs.New(errs.NotFound, "there is no job %d", id)
		missing.Number = fault.InvalidJobID
		return nil, model.JobTimes{}, missing
	}
	return answer.Jobs.List, model.JobTimes{LastUpdate: answer.LastUpdate, LastBackfill: answer.LastBackfill}, err
}
