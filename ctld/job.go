package ctld

import (
	"context"
	"slices"
	"time"

	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handleJobs lists jobs, all or those asked for, that the client may see. 1900 when nothing has changed since the time that is given.
func (c *Controller) handleJobs(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.JobInfoRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	list, changed := c.snapshot()
	if unchanged(q.LastUpdate, changed) {
		return 0, nil, refuse(errs.Conflict, fault.NoChange, "nothing has changed")
	}
	return jobInfo(ctx, c.visible(r.Identity, list, q.JobIDs))
}

// handleUserJobs lists the jobs of one user: somebody else's are nothing to who may not see them.
func (c *Controller) handleUserJobs(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.JobUserInfoRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	list, _ := c.snapshot()
	list = slices.DeleteFunc(c.visible(r.Identity, list, nil), func(j *record) bool { return j.Job.UserID != q.UserID })
	return jobInfo(ctx, list)
}

// jobInfo returns the answer that shows the jobs in list.
func jobInfo(ctx context.Context, list []*record) (message.Type, message.Body, error) {
	now := time.Now()
	info := &message.JobInfo{LastUpdate: model.At(now)}
	info.Jobs.Len = len(list)
	info.Jobs.Pull = pull(ctx, list, func(r *record) model.Job { return r.shown(now) })
	return message.ResponseJobInfo, info, nil
}

// handleJob shows one job by number; 2017 when there is none, or it is another's.
func (c *Controller) handleJob(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
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
	now := time.Now()
	info := &message.JobInfo{LastUpdate: model.At(now)}
	info.Jobs.List = []model.Job{j.shown(now)}
	return message.ResponseJobInfo, info, nil
}

// seen is the job with this number, if who may see it; c.mu is held. 2017 when there is none, or it is another's.
func (c *Controller) seen(who server.Identity, id model.Opt[uint32]) (*job, error) {
	j := c.jobs[id.Number]
	if !id.Set || j == nil || !c.sees(who, j.record) {
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

// sees reports whether who sees job j, with all its texts. Nothing of a job that it denies is shown by any request.
func (c *Controller) sees(who server.Identity, j *record) bool {
	return c.privacy.Sees(who.UID, j.Job.UserID, conf.PrivateJobs)
}

// shown returns the job as clients see it at now: with the reason why it waits.
func (r *record) shown(now time.Time) model.Job {
	m := r.Job
	if m.State.Base() == model.JobPending {
		switch {
		case r.held():
			m.StateReason = reasonHeldUser
		case now.Before(r.begin()):
			m.StateReason = reasonBegin
		default:
			m.StateReason = reasonResources
		}
	}
	return m
}

// ran notes where a job runs, or ran, and what it has of the machine.
func (c *Controller) ran(m *model.Job) {
	m.Nodes, m.BatchHost, m.TRESAlloc = c.cfg.Node, c.cfg.Node, m.TRESReq
	m.NodeIndexes = model.Bitmap{Len: 1, Set: true, Bits: []byte{1}}
}
