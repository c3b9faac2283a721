package ctld

import (
	"context"
	"slices"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handlePriorities returns the priorities of the jobs that wait, except those
// that are held. This controller computes a priority from the number and the nice
// value of a job, so there are no parts.
func (c *Controller) handlePriorities(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	if r.Version < codec.V2302 { // its answer would have another layout
		return 0, nil, refuse(errs.Unsupported, fault.NotSupported, "this controller does not support priority factors in Slurm before 23.02")
	}
	list, _ := c.snapshot()
	list = slices.DeleteFunc(c.visible(r.Identity, list, nil), func(r *record) bool {
		return r.Job.State.Base() != model.JobPending || r.held()
	})
	answer := &message.Priorities{Jobs: codec.Stream[model.JobPriority]{Len: len(list)}}
	answer.Jobs.Pull = pull(ctx, list, func(r *record) model.JobPriority {
		j := &r.Job
		return model.JobPriority{StepID: j.StepID, Account: j.Account, Partition: j.Partition, QOS: j.QOS, UserID: j.UserID, Direct: float64(j.Priority)}
	})
	return message.ResponsePriorities, answer, nil
}
