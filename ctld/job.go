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
	return c.jobInfo(q.LastUpdate, func(j *job) bool {
		return (q.JobIDs == nil || slices.Contains(q.JobIDs, j.id())) && c.sees(r.Identity, j)
	})
}

// handleUserJobs lists the jobs of one user: somebody else's are nothing to who may not see them.
func (c *Controller) handleUserJobs(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.JobUserInfoRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	return c.jobInfo(0, func(j *job) bool { return j.Job.UserID == q.UserID && c.sees(r.Identity, j) })
}

// jobInfo lists the jobs that are asked for, if anything has changed since last.
func (c *Controller) jobInfo(last model.Time, asked func(*job) bool) (message.Type, message.Body, error) {
	now := time.Now()
	info := &message.JobInfo{LastUpdate: model.At(now)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if unchanged(last, c.changed) {
		return 0, nil, refuse(errs.Conflict, fault.NoChange, "nothing has changed")
	}
	for _, j := range c.jobs {
		if asked(j) {
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
	j, err := c.seen(r.Identity, q.JobID)
	if err != nil {
		return 0, nil, err
	}
	info := &message.JobInfo{LastUpdate: model.At(now)}
	info.Jobs.List = []model.Job{c.shown(j, now)}
	return message.ResponseJobInfo, info, nil
}

// seen is the job with this number, if who may see it; c.mu is held. 2017 when there is none, or it is another's.
func (c *Controller) seen(who server.Identity, id model.Opt[uint32]) (*job, error) {
	j := c.jobs[id.Number]
	if !id.Set || j == nil || !c.sees(who, j) {
		return nil, refuse(errs.NotFound, fault.InvalidJobID, "there is no job %d", id.Number)
	}
	return j, nil
}

// What of a job is ready to run, as bits: "scontrol wait_job" waits for all.
const (
	readyNode   = 1
	readyJob    = 2
	readyProlog = 4
)

// handleReady tells whether a job runs. The node is always ready, and nothing is done to it before a job.
func (c *Controller) handleReady(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.JobInfoSingleRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	j, err := c.seen(r.Identity, q.JobID)
	if err != nil {
		return 0, nil, err
	}
	bits := uint32(readyNode | readyProlog)
	if j.phase == running {
		bits |= readyJob
	}
	return message.ResponseJobReady, &message.RC{Code: bits}, nil
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
