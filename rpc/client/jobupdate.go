package client

import (
	"context"
	"errors"
	"strconv"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// UpdateJob changes the job with the given id, such as "123", "123_4" or
// "123+1". It changes only the fields that are set in desc. If the results of
// an array's tasks differ, UpdateJob returns all results. Otherwise it returns
// no results. It never repeats the request.
func (c *Client) UpdateJob(ctx context.Context, cred model.Credential, id string, desc *model.JobDesc) ([]model.TaskResult, error) {
	d := *desc
	d.JobIDText = id
	digits := len(id)
	for i, r := range id {
		if r < '0' || r > '9' {
			digits = i
			break
		}
	}
	if n, err := strconv.ParseUint(id[:digits], 10, 32); err == nil {
		d.JobID = model.Some(uint32(n))
	}
	if d.Release && !d.Priority.Set {
		d.Priority = model.Infinite[uint32]()
	}
	r := request{kind: message.RequestUpdateJob, body: &message.SubmitRequest{Desc: d}}
	results, err := c.changeTasks(ctx, cred, r)
	return results, federationError(policyError(err), &d)
}

// federationError adds a reason to an error without one, which controllers send
// if a change sets the clusters of a job that is in no federation.
func federationError(err error, d *model.JobDesc) error {
	field := "clusters"
	if d.Clusters == "" {
		field = "cluster_constraint"
	}
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Number != fault.Unspecified || d.Clusters == "" && d.ClusterFeatures == "" || e.Message != noReason {
		return err
	}
	refused := *e
	refused.Message = field + ": the job is in no federation, or the site's submit policy refuses the change"
	refused.Detail = refused.Message
	return &refused
}

// changeTasks sends r, which changes a job. If the results of an array's tasks
// differ and at least one task was changed, changeTasks returns all results. If
// no task was changed, it returns the first task's error. Otherwise it returns
// nil.
func (c *Client) changeTasks(ctx context.Context, cred model.Credential, r request) ([]model.TaskResult, error) {
	var tasks message.JobArrayErrors
	err := c.answerTo(ctx, cred, r, func(answer *reply) error {
		if answer.kind == message.ResponseJobArrayErrors {
			return c.daemons.badAnswer(answer.decode(&tasks))
		}
		return c.daemons.read(answer, message.ResponseRC, nil)
	})
	if err != nil {
		return nil, err
	}
	var results []model.TaskResult
	var firstErr error
	changed := 0
	for _, e := range tasks.Errors {
		result := model.TaskResult{Tasks: e.JobIDs, Code: e.Code, Reason: fault.Text(int(int32(e.Code))), Message: e.Message}
		results = append(results, result)
		switch {
		case e.Code == 0:
			changed++
		case firstErr == nil:
			firstErr = fault.Of(e.Code, e.Message)
		}
	}
	if changed == 0 && firstErr != nil {
		return nil, firstErr
	}
	return results, nil
}

// Requeue requeues the job with the given id, such as "123" or "123_4". If the
// results of an array's tasks differ, Requeue returns all results. It never
// repeats the request.
func (c *Client) Requeue(ctx context.Context, cred model.Credential, id string, flags model.Requeue) ([]model.TaskResult, error) {
	body := &message.RequeueRequest{JobText: id, Flags: flags}
	return c.changeTasks(ctx, cred, request{kind: message.RequestJobRequeue, body: body})
}
