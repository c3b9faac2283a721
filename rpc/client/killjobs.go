package client

import (
	"context"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// KillJobs sends a signal to the jobs that k selects. It returns a result for
// each job that could not be signalled, or for every job if model.KillVerbose
// is set. Like Kill, it never repeats the request. Controllers before 24.05 do
// not know KillJobs' message. KillJobs sends them nothing and returns
// errs.Unsupported.
func (c *Client) KillJobs(ctx context.Context, cred model.Credential, k *model.KillJobs) ([]model.KillResult, error) {
	var results []model.KillResult
	err := c.killJobs(ctx, cred, k, func(r model.KillResult) { results = append(results, r) })
	return results, err
}

// killJobs sends KillJobs' message, and calls each(r) for every result r.
func (c *Client) killJobs(ctx context.Context, cred model.Credential, k *model.KillJobs, each func(model.KillResult)) error {
	answer := message.KillJobsResponse{Jobs: codec.Stream[model.KillResult]{Each: wrapCallback(func(r *model.KillResult) error {
		result := *r
		result.Reason = "No error"
		if result.Code != 0 {
			result.Reason = fault.Of(result.Code, "").Message
		}
		each(result)
		return nil
	})}}
	r := request{kind: message.RequestKillJobs, body: &message.KillJobs{KillJobs: *k}, since: codec.V2405}
	return c.query(ctx, cred, r, message.ResponseKillJobs, &answer)
}

// KillEach signals jobs like Kill, but with KillJobs' message. It returns a
// result for each job that could not be signalled, such as an array task that
// has already ended. If model.KillVerbose is set, it returns a result for every
// job. If no job could be signalled, KillEach also returns an error, as Kill
// does.
//
// Some controllers, such as Slurm's before 24.05, do not know KillJobs'
// message. KillEach sends them Kill's message and returns no results. It also
// does this for a job of another cluster of the federation: only the answer to
// Kill's message names that cluster.
func (c *Client) KillEach(ctx context.Context, cred model.Credential, id string, signal uint16, flags model.Kill) ([]model.KillResult, error) {
	var results []model.KillResult
	var failed *model.KillResult
	signalled := false
	// Only the results for all jobs show whether any job was signalled.
	k := &model.KillJobs{Jobs: []string{id}, Signal: signal, Flags: flags | model.KillVerbose}
	err := c.killJobs(ctx, cred, k, func(r model.KillResult) {
		switch {
		case r.Code == 0:
			signalled = true
		case failed == nil || failed.Code == fault.AlreadyDone:
			failed = &r
		}
		if r.Code != 0 || flags&model.KillVerbose != 0 {
			results = append(results, r)
		}
	})
	switch {
	case errs.KindOf(err) == errs.Unsupported:
		return nil, c.Kill(ctx, cred, id, signal, flags)
	case err != nil:
		return nil, err
	case failed != nil && !signalled && failed.Code == fault.NotSelected:
		return nil, c.Kill(ctx, cred, id, signal, flags)
	case failed != nil && !signalled:
		return results, fault.Of(failed.Code, failed.Message)
	}
	return results, nil
}
