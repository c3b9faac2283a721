package ctld

import (
	"context"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// The first three handlers return empty lists, because this controller has no
// reservations, licenses or fair shares. They exist so that clients can send
// the same requests to every controller.

// handleReservations returns an empty list: there are no reservations.
func (c *Controller) handleReservations(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.ReservationInfoRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	v := c.startVersion()
	if v.isCurrent(q.LastUpdate) {
		return 0, nil, refuse(errs.Conflict, fault.NoChange, "nothing has changed")
	}
	return message.ResponseReservationInfo, &message.ReservationInfo{LastUpdate: v.time}, nil
}

// handleLicenses returns an empty list: there are no licenses.
func (c *Controller) handleLicenses(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.LicenseInfoRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	v := c.startVersion()
	if v.isCurrent(q.LastUpdate) {
		return 0, nil, refuse(errs.Conflict, fault.NoChange, "nothing has changed")
	}
	return message.ResponseLicenseInfo, &message.LicenseInfo{LastUpdate: v.time}, nil
}

// handleShares returns an empty list: this controller keeps no fair shares.
func (c *Controller) handleShares(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	if err := r.Decode(new(message.SharesRequest)); err != nil {
		return 0, nil, err
	}
	return message.ResponseShares, &message.Shares{}, nil
}

// handleStats returns the numbers of jobs that were submitted, started,
// completed, cancelled or lost since this controller started. It also returns
// the numbers of jobs that wait or run now. It refuses to reset the statistics.
func (c *Controller) handleStats(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.StatsRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	if q.Command != message.StatsGet {
		return 0, nil, refuse(errs.Unsupported, fault.NotSupported, "this controller does not reset statistics")
	}
	since, now := model.At(c.startedAt), model.At(time.Now())
	s := &message.ControllerStats{}
	c.mu.Lock() // held for the whole count, because a job that is forgotten meanwhile would be missing or count twice
	defer c.mu.Unlock()
	s.ControllerStats = c.forgotten
	s.RequestTime, s.StatsStart, s.JobStatesTime = now, since, now
	for _, j := range c.jobs {
		countJob(&s.ControllerStats, &j.Job, since)
	}
	return message.ResponseStats, s, nil
}

// countJob adds a job to the statistics of what happened since a time.
func countJob(s *model.ControllerStats, j *model.Job, since model.Time) {
	s.JobsSubmitted += count(j.SubmitTime >= since)
	s.JobsStarted += count(j.StartTime >= since)
	s.JobsPending += count(j.State.Base() == model.JobPending)
	s.JobsRunning += count(j.State.Base() == model.JobRunning && j.State&model.JobConfiguring == 0)
	if endedSince := j.State.Ended() && j.EndTime >= since; endedSince {
		s.JobsCompleted += count(j.State == model.JobComplete)
		s.JobsCanceled += count(j.State == model.JobCancelled)
		s.JobsFailed += count(j.State == model.JobNodeFail)
	}
}

func count(cond bool) uint32 {
	if cond {
		return 1
	}
	return 0
}

// handleJobStates returns the states of the requested jobs, or of all jobs if
// the request names none. It omits jobs that do not exist and jobs that the
// client may not see. It also omits array tasks and components of heterogeneous
// jobs, because this controller has none.
func (c *Controller) handleJobStates(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.JobStateRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	var ids []uint32 // nil: all
	if len(q.Jobs) > 0 {
		ids = make([]uint32, 0, len(q.Jobs))
	}
	for _, j := range q.Jobs {
		if !j.ArrayTaskID.Set && !j.HetOffset.Set {
			ids = append(ids, j.JobID)
		}
	}
	list, _ := c.snapshot()
	list = c.visible(r.Identity, list, ids)
	answer := &message.JobStates{}
	answer.Jobs.Len = len(list)
	answer.Jobs.Pull = pull(ctx, list, func(r *record) model.JobStateEntry {
		return model.JobStateEntry{JobID: r.id(), State: r.state()}
	})
	return message.ResponseJobState, answer, nil
}
