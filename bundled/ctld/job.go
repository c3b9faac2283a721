package ctld

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"schedrestd/bundled/ctld/step"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handleJobs returns the requested jobs, or all jobs if the request names none.
// It omits jobs that the client may not see. It returns error 1900 when no job
// has changed since the time in the request.
func (c *Controller) handleJobs(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.JobInfoRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	list, v := c.snapshot()
	if v.isCurrent(q.LastUpdate) {
		return 0, nil, refuse(errs.Conflict, fault.NoChange, "nothing has changed")
	}
	return jobInfo(ctx, c.visible(r.Identity, list, q.JobIDs), v)
}

// handleUserJobs returns the jobs of one user. The list is empty if the client
// may not see that user's jobs.
func (c *Controller) handleUserJobs(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.JobUserInfoRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	list, v := c.snapshot()
	list = slices.DeleteFunc(c.visible(r.Identity, list, nil), func(j *record) bool { return j.Job.UserID != q.UserID })
	return jobInfo(ctx, list, v)
}

// jobInfo returns an answer with the jobs in list, whose version is v.
func jobInfo(ctx context.Context, list []*record, v version) (message.Type, message.Body, error) {
	now := time.Now()
	info := &message.JobInfo{LastUpdate: v.time}
	info.Jobs.Len = len(list)
	info.Jobs.Pull = pull(ctx, list, func(r *record) model.Job { return r.view(now) })
	return message.ResponseJobInfo, info, nil
}

// handleJob returns one job by number. It returns error 2017 when there is no
// such job or the client may not see it.
func (c *Controller) handleJob(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.JobInfoSingleRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	j, err := c.visibleJobLocked(r.Identity, q.JobID)
	if err != nil {
		return 0, nil, err
	}
	now := time.Now()
	info := &message.JobInfo{LastUpdate: c.updateTimeLocked(now)}
	info.Jobs.List = []model.Job{j.view(now)}
	return message.ResponseJobInfo, info, nil
}

// visibleJobLocked returns the job with this number. It returns error 2017 when
// there is no such job or the client may not see it.
func (c *Controller) visibleJobLocked(client server.Identity, id model.Opt[uint32]) (*job, error) {
	j := c.jobs[id.Number]
	if !id.Set || j == nil || !c.canSee(client, j.record) {
		return nil, refuse(errs.NotFound, fault.InvalidJobID, "there is no job %d", id.Number)
	}
	return j, nil
}

// These bits make up the answer of handleReady. "scontrol wait_job" waits until
// all of them are set.
const (
	readyNode   = 1
	readyJob    = 2
	readyProlog = 4
)

// handleReady reports whether a job runs. In its answer, the bits for the node
// and the prolog are always set, because this controller does not prepare the
// node for a job.
func (c *Controller) handleReady(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.JobInfoSingleRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	j, err := c.visibleJobLocked(r.Identity, q.JobID)
	if err != nil {
		return 0, nil, err
	}
	bits := uint32(readyNode | readyProlog)
	if j.phase == running {
		bits |= readyJob
	}
	return message.ResponseJobReady, &message.RC{Code: bits}, nil
}

// canSee reports whether the client may see job j, including texts such as the
// job's comments. Every handler that shows jobs must call canSee.
func (c *Controller) canSee(client server.Identity, j *record) bool {
	return c.privacy.CanSee(client.UID, j.Job.UserID, conf.PrivateJobs)
}

// view returns the job as clients see it at the given time. If the job waits,
// the result says why, and when the job can start if that is known. While its
// processes exit, the job already has the state that follows.
func (r *record) view(now time.Time) model.Job {
	m := r.Job
	m.State = r.state()
	if m.State == model.JobPending {
		switch {
		case r.held():
			if m.AccrueTime = 0; !now.Before(r.begin()) {
				m.EligibleTime = 0
			}
			if m.StateReason != reasonHeldAdmin {
				m.StateReason = reasonHeldUser
			}
		case now.Before(r.begin()):
			m.StateReason, m.AccrueTime, m.StartTime = reasonBegin, 0, m.EligibleTime
			m.EndTime = limitReachedAt(&m)
		case m.StateReason == reasonLaunch: // an attempt to start the job has failed
		default:
			m.StateReason = reasonResources
		}
	}
	return m
}

// state returns the state of the job as clients see it.
func (r *record) state() model.JobState {
	switch s := r.Job.State; {
	case s != model.JobRunning|model.JobCompleting:
		return s
	case r.Requeue != requeueNone:
		return model.JobPending | model.JobCompleting
	default:
		return model.JobCancelled | model.JobCompleting
	}
}

// setAllocation records in m the node and the resources that the job was
// allocated. It is meant for jobs that run or have run.
func (c *Controller) setAllocation(m *model.Job) {
	m.Nodes, m.BatchHost, m.TRESAlloc = c.cfg.Node, c.cfg.Node, m.TRESReq
	m.NodeIndexes = model.Bitmap{Len: 1, Set: true, Bits: []byte{1}}
}

// handleScript returns the script of a job that has not ended, to the job's user and
// to root and SchedUser. The script of a job that has ended is no longer kept.
func (c *Controller) handleScript(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.JobInfoSingleRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	c.mu.Lock()
	j, err := c.editableJobLocked(r.Identity, q.JobID.Number)
	hasEnded := err == nil && j.phase == ended
	c.mu.Unlock()
	if err != nil {
		return 0, nil, err
	}
	spec := new(step.Spec)
	if b, err := c.journal.Get(key(specPrefix, uint64(q.JobID.Number))); hasEnded || err != nil || json.Unmarshal(b, spec) != nil {
		return 0, nil, refuse(errs.NotFound, fault.NoScript, "the script of job %d is no longer kept", q.JobID.Number)
	}
	return message.ResponseBatchScript, &message.BatchScript{Text: string(spec.Script)}, nil
}
