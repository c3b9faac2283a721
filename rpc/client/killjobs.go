package client

import (
	"context"

	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// KillJobs sends a signal to the jobs that k selects. It returns a result for
// each job that could not be signalled. With model.KillVerbose, it returns a
// result for every job. Like Kill, it never repeats the request. Controllers
// before 24.05 do not know the message, so for them KillJobs sends nothing and
// returns errs.Unsupported.
func (c *Client) KillJobs(ctx context.Context, cred model.Credential, k *model.KillJobs) ([]model.KillResult, error) {
	var results []model.KillResult
	answer := message.KillJobsResponse{Jobs: codec.Stream[model.KillResult]{Each: wrapCallback(func(r *model.KillResult) error {
		result := *r
		result.Reason = "No error"
		if result.Code != 0 {
			result.Reason = fault.Of(result.Code, "").Message
		}
		results = append(results, result)
		return nil
	})}}
	r := request{kind: message.RequestKillJobs, body: &message.KillJobs{KillJobs: *k}, since: codec.V2405}
	err := c.query(ctx, cred, r, message.ResponseKillJobs, &answer)
	return results, err
}

// KillEach signals jobs like Kill, but with the message of KillJobs. With
// model.KillVerbose it returns a result for each job that id names, otherwise
// only for each job that could not be signalled. If there is a single result
// and it is a failure, KillEach returns it as an error. For a controller that
// does not know the message, such as Slurm's before 24.05, KillEach sends
// Kill's message instead and returns no results.
func (c *Client) KillEach(ctx context.Context, cred model.Credential, id string, signal uint16, flags model.Kill) ([]model.KillResult, error) {
	results, err := c.KillJobs(ctx, cred, &model.KillJobs{Jobs: []string{id}, Signal: signal, Flags: flags})
	switch {
	case errs.KindOf(err) == errs.Unsupported:
		return nil, c.Kill(ctx, cred, id, signal, flags)
	case err != nil:
		return nil, err
	case len(results) == 1 && results[0].Code != 0:
		return nil, fault.Of(results[0].Code, results[0].Message)
	}
	return results, nil
}
