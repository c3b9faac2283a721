package client

import (
	"context"
	"fmt"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// SubmitSeveral submits the components of a heterogeneous batch job. Like
// Submit, it never repeats the request.
func (c *Client) SubmitSeveral(ctx context.Context, cred model.Credential, descs []model.JobDesc) (*model.Submitted, error) {
	var answer message.SubmitResponse
	r := request{kind: message.RequestSubmitHetJob, body: &message.JobDescs{Jobs: allWithDefaults(descs)}}
	if err := c.query(ctx, cred, r, message.ResponseSubmitBatchJob, &answer); err != nil {
		return nil, policyError(err)
	}
	return &answer.Submitted, nil
}

// Pauses between two polls of a job that waits for resources.
const (
	firstPoll = 250 * time.Millisecond
	maxPoll   = 5 * time.Second
)

// Allocate requests resources without a batch script, for one job or the
// components of a heterogeneous job. It waits until the job has the resources.
// If ctx ends first, it cancels the job.
func (c *Client) Allocate(ctx context.Context, cred model.Credential, descs []model.JobDesc) (*model.Submitted, error) {
	r, kind := request{kind: message.RequestAllocation}, message.ResponseAllocation
	if len(descs) == 1 {
		r.body = &message.SubmitRequest{Desc: withDefaults(descs[0])}
	} else {
		r.kind, kind, r.body = message.RequestHetAllocation, message.ResponseHetAllocation, &message.JobDescs{Jobs: allWithDefaults(descs)}
	}
	a, err := c.queryAllocation(ctx, cred, r, kind)
	if err != nil {
		return nil, policyError(err)
	}
	job := &model.Submitted{StepID: model.StepID{JobID: a.StepID.JobID}, ErrorCode: a.ErrorCode, UserMessage: a.UserMessage}
	if a.NodeCount > 0 {
		return job, nil
	}
	return job, c.awaitAllocation(ctx, cred, job.StepID.JobID, len(descs) > 1)
}

// queryAllocation sends a request and returns the allocation in the answer. The
// answer for a heterogeneous job contains several allocations. In this case,
// queryAllocation returns that of the first component.
func (c *Client) queryAllocation(ctx context.Context, cred model.Credential, r request, kind message.Type) (*model.Allocation, error) {
	if kind != message.ResponseHetAllocation {
		var single message.Allocation
		err := c.query(ctx, cred, r, kind, &single)
		return &single.Allocation, err
	}
	var het message.Allocations
	if err := c.query(ctx, cred, r, kind, &het); err != nil {
		return nil, err
	}
	if len(het.Components) == 0 {
		return nil, errs.New(errs.BadAnswer, "the controller's answer has no component of the job")
	}
	return &het.Components[0], nil
}

// awaitAllocation polls a job until the job has its resources or has ended, or
// until ctx ends. The controller can't notify a worker instead, because a
// worker listens on no port.
func (c *Client) awaitAllocation(ctx context.Context, cred model.Credential, id uint32, het bool) error {
	r, kind := request{kind: message.RequestAllocationInfo, repeatable: true}, message.ResponseAllocationInfo
	if het {
		r.kind, kind = message.RequestHetAllocationInfo, message.ResponseHetAllocation
	}
	r.body = &message.AllocationInfoRequest{JobID: model.Some(id)}
	for pause := firstPoll; ; pause = min(2*pause, maxPoll) {
		select {
		case <-ctx.Done():
			return c.cancelAllocation(ctx, cred, id)
		case <-time.After(pause):
		}
		a, err := c.queryAllocation(ctx, cred, r, kind)
		switch n := numberOf(err); {
		case err == nil && a.NodeCount > 0:
			return nil
		case errs.KindOf(err) == errs.Unauthenticated: // so the job can't be ended either
			return &errs.Error{Kind: errs.BadAnswer, Code: errs.OutcomeUnknown, Err: err,
				Message: fmt.Sprintf("job %d still waits for resources, and the credential is no longer accepted", id), Hint: "cancel the job with another credential"}
		case err == nil, n == fault.JobPending, n == 0, ctx.Err() != nil: // the job is pending, or the controller is temporarily unavailable
		case n == fault.AlreadyDone, n == fault.InvalidJobID:
			return errs.New(errs.Conflict, "job %d was cancelled while it waited for resources", id)
		default:
			return err
		}
	}
}

// cancelAllocation cancels a job whose client no longer waits for its
// resources.
func (c *Client) cancelAllocation(ctx context.Context, cred model.Credential, id uint32) error {
	ctx = context.WithoutCancel(ctx)
	r := request{kind: message.RequestCompleteAllocation, body: &message.CompleteAllocation{JobID: model.Some(id), ExitCode: 0xffffffff}}
	err := c.query(ctx, cred, r, message.ResponseRC, nil)
	if n := numberOf(err); err != nil && n != fault.AlreadyDone && n != fault.InvalidJobID {
		return &errs.Error{Kind: errs.BadAnswer, Code: errs.OutcomeUnknown, Err: err,
			Message: fmt.Sprintf("job %d waited too long for resources, and could not be ended", id)}
	}
	return errs.New(errs.Unavailable, "job %d waited too long for resources and was ended", id)
}
