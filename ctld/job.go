package ctld

import (
	"cmp"
	"context"
	"slices"
	"time"

	"schedrestd/ctld/queue"
	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handleJobs lists jobs, all or those asked for: a user's own; root and the scheduler's user
// see everybody's. 1900 when nothing has changed since the time that is given.
func (c *Controller) handleJobs(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.JobInfoRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	now := time.Now()
	info := &message.JobInfo{LastUpdate: model.At(now)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if unchanged(q.LastUpdate, c.changed) {
		return 0, nil, refuse(errs.Conflict, fault.NoChange, "nothing has changed")
	}
	for id, j := range c.jobs {
		if (q.JobIDs == nil || slices.Contains(q.JobIDs, id)) && c.sees(r.Identity, j) {
			info.Jobs.List = append(info.Jobs.List, c.shown(j, now))
		}
	}
	slices.SortFunc(info.Jobs.List, func(a, b model.Job) int { return cmp.Compare(a.StepID.JobID, b.StepID.JobID) })
	return message.ResponseJobInfo, info, nil
}

// handleJob shows one job by number; 2017 when there is none, or it is another's.
func (c *Controller) handleJob(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.JobInfoSingleRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[q.JobID.Number]
	if !q.JobID.Set || j == nil || !c.sees(r.Identity, j) {
		return 0, nil, refuse(errs.NotFound, fault.InvalidJobID, "there is no job %d", q.JobID.Number)
	}
	info := &message.JobInfo{LastUpdate: model.At(now)}
	info.Jobs.List = []model.Job{c.shown(j, now)}
	return message.ResponseJobInfo, info, nil
}

func (c *Controller) sees(who server.Identity, j *job) bool {
	return who.UID == j.Job.UserID || c.super(who.UID)
}

// shown is job j with what is worked out anew each time; c.mu is held.
func (c *Controller) shown(j *job, now time.Time) model.Job {
	m := j.Job
	if why, ok := c.queue.Waiting(j.id(), now); ok {
		m.StateReason = map[queue.Why]uint32{
			queue.Held: reasonHeldUser, queue.Begin: reasonBegin, queue.Resources: reasonResources,
		}[why]
	}
	if j.phase == running && j.cancelled {
		m.State |= model.JobCompleting
	}
	return m
}

// ran notes where a job runs, or ran, and what it has of the machine.
func (c *Controller) ran(m *model.Job) {
	m.Nodes, m.BatchHost, m.TRESAlloc = c.cfg.Node, c.cfg.Node, m.TRESReq
	m.NodeIndexes = model.Bitmap{Len: 1, Set: true, Bits: []byte{1}}
}
