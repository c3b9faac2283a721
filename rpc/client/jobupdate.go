package client

import (
	"context"
	"strconv"

	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// UpdateJob changes the job that id names, "123", "123_4" or "123+1": what desc
// has set. Tasks of an array that fared differently are in the result; nil means
// that all is done. It is not sent twice.
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

// leaveMailType is the mail type of a change that leaves it alone; 0 would take
// all of it back.
const leaveMailType = 0xfffe

// eachTask makes a change to a job and returns what became of the tasks of an
// array; nil for a job that is none. When no task was changed it is the first
// task's error.
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

// Requeue queues the job that id names again, "123" or "123_4". Tasks of an
// array that fared differently are in the result. It is not sent twice.
func (c *Client) Requeue(ctx context.Context, cred model.Credential, id string, flags model.Requeue) ([]model.TaskResult, error) {
	body := &message.RequeueRequest{JobText: id, Flags: flags}
	return c.eachTask(ctx, cred, request{kind: message.RequestJobRequeue, body: body})
}
