package client

import (
	"context"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// Jobs calls each(j) for every job j, under the same rules as Nodes.
func (c *Client) Jobs(ctx context.Context, cred model.Credential, q model.Query, each func(*model.Job) error) (model.ListTimes, error) {
	r := datedList(message.RequestJobInfo, q, func(since model.Time) message.Body {
		return &message.JobInfoRequest{LastUpdate: since, ShowFlags: uint16(q.Flags)}
	})
	r.prompt = q.Prompt
	if q.User.Set {
		r.dated = nil
		r.kind, r.body = message.RequestJobUserInfo, &message.JobUserInfoRequest{UserID: q.User.Number, ShowFlags: uint16(q.Flags)}
	}
	return c.queryJobs(ctx, cred, r, q, each)
}

// queryJobs sends a request for jobs, and calls each(j) for every job j in the
// answer.
func (c *Client) queryJobs(ctx context.Context, cred model.Credential, r request, q model.Query, each func(*model.Job) error) (model.ListTimes, error) {
	answer := message.JobInfo{Without: q.Without}
	answer.Jobs.Digest = q.Digest
	answer.Jobs.Each = wrapCallback(func(j *model.Job) error {
		if err := unchanged(answer.LastUpdate, q); err != nil { // a controller does not compare the times when it lists one user's jobs, or one job
			return err
		}
		if markBackfillTried(j, answer.LastBackfill) && q.Digest != nil {
			*q.Digest = ^*q.Digest
		}
		return each(j)
	})
	err := c.query(ctx, cred, r, message.ResponseJobInfo, &answer)
	return model.ListTimes{LastUpdate: answer.LastUpdate, LastBackfill: answer.LastBackfill}, err
}

// Job calls each(j) for every record j of the job with this id. An array or a
// heterogeneous job has several records. If there is no such job, Job does not
// call each and returns errs.NotFound. The rules for the calls are the same as
// for Nodes, and q.Since has the same effect as for Node.
func (c *Client) Job(ctx context.Context, cred model.Credential, id uint32, q model.Query, each func(*model.Job) error) (model.ListTimes, error) {
	found := false
	req := message.JobInfoSingleRequest{JobID: model.Some(id), ShowFlags: uint16(q.Flags)}
	r := request{kind: message.RequestJobInfoSingle, body: &req, repeatable: true}
	times, err := c.queryJobs(ctx, cred, r, q, func(j *model.Job) error {
		found = true
		return each(j)
	})
	if !found && (err == nil || numberOf(err) == fault.InvalidJobID) {
		return model.ListTimes{}, errs.New(errs.NotFound, "there is no job %d", id).WithNumber(fault.InvalidJobID)
	}
	return times, err
}

// markBackfillTried sets JobBackfillTriedLast for a pending job if the last run
// of backfill scheduling has examined the job. Controllers do not set this
// flag.
func markBackfillTried(j *model.Job, last model.Time) (marked bool) {
	marked = last != 0 && j.State.Base() == model.JobPending && j.Flags&model.JobBackfillTried != 0 && j.LastSchedEval >= last
	if marked {
		j.Flags |= model.JobBackfillTriedLast
	}
	return marked
}
