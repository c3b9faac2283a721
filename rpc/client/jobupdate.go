package client

import (
	"context"
	"strconv"

	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// UpdateJob changes the fields that are set in desc for the job that id names,
// such as "123", "123_4" or "123+1". If the tasks of an array had different
// results, it returns the results; nil means that all tasks were changed. It
// never repeats the request.
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
	if d.MailType == 0 {
		d.MailType = leaveMailType
	}
	r := request{kind: message.RequestUpdateJob, body: &message.SubmitRequest{Desc: d}}
	results, err := c.eachTask(ctx, cred, r)
	return results, byPolicy(err)
}

// leaveMailType is the mail type in a change that does not change the mail
// types. 0 would remove them.
const leaveMailType = 0xfffe

// eachTask sends r, which changes a job. If the tasks of an array had different
// results, eachTask returns the results, otherwise nil. If no task was changed,
// it returns the first task's error.
func (c *Client) eachTask(ctx context.Context, cred model.Credential, r request) ([]model.TaskResult, error) {
	var each message.JobArrayErrors
	err := c.answerTo(ctx, cred, r, func(answer *reply) error {
		if answer.kind == message.ResponseJobArrayErrors {
			return c.daemons.bad(answer.decode(&each))
		}
		return c.daemons.read(answer, message.ResponseRC, nil)
	})
	if err != nil {
		return nil, err
	}
	var results []model.TaskResult
	var refused error
	changed := 0
	for _, e := range each.Errors {
		result := model.TaskResult{Tasks: e.JobIDs, Code: e.Code, Reason: fault.Text(int(int32(e.Code))), Message: e.Message}
		results = append(results, result)
		switch {
		case e.Code == 0:
			changed++
		case refused == nil:
			refused = fault.Of(e.Code, e.Message)
		}
	}
	if changed == 0 && refused != nil {
		return nil, refused
	}
	return results, nil
}

// Requeue requeues the job that id names, such as "123" or "123_4". If the
// tasks of an array had different results, it returns the results. It never
// repeats the request.
func (c *Client) Requeue(ctx context.Context, cred model.Credential, id string, flags model.Requeue) ([]model.TaskResult, error) {
	body := &message.RequeueRequest{JobText: id, Flags: flags}
	return c.eachTask(ctx, cred, request{kind: message.RequestJobRequeue, body: body})
}
