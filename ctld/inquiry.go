package ctld

import (
	"cmp"
	"context"
	"slices"
	"time"

	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// Questions about what does not exist on one machine are answered with nothing, which is the truth; a client
// that asks need not know whom.

// handleReservations lists the reservations: there are none.
func (c *Controller) handleReservations(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.ReservationInfoRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	if unchanged(q.LastUpdate, model.At(c.started)) {
		return 0, nil, refuse(errs.Conflict, fault.NoChange, "nothing has changed")
	}
	return message.ResponseReservationInfo, &message.ReservationInfo{LastUpdate: model.At(time.Now())}, nil
}

// handleLicenses lists the licenses: there are none.
func (c *Controller) handleLicenses(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.LicenseInfoRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	if unchanged(q.LastUpdate, model.At(c.started)) {
		return 0, nil, refuse(errs.Conflict, fault.NoChange, "nothing has changed")
	}
	return message.ResponseLicenseInfo, &message.LicenseInfo{LastUpdate: model.At(time.Now())}, nil
}

// handleShares lists the fair shares: there are none, as what somebody used does not count here.
func (c *Controller) handleShares(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	if err := r.Decode(new(message.SharesRequest)); err != nil {
		return 0, nil, err
	}
	return message.ResponseShares, &message.Shares{}, nil
}

// handleStats counts jobs: those that the controller still knows. Nothing is counted anew on request.
func (c *Controller) handleStats(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.StatsRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	if q.Command != message.StatsGet {
		return 0, nil, refuse(errs.Unsupported, fault.NotSupported, "counts can't be reset")
	}
	since, now := model.At(c.started), model.At(time.Now())
	s := &message.ControllerStats{}
	s.RequestTime, s.StatsStart, s.JobStatesTime = now, since, now
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.jobs {
		s.JobsSubmitted += count(j.Job.SubmitTime >= since)
		s.JobsStarted += count(j.Job.StartTime >= since)
		s.JobsPending += count(j.phase == waiting)
		s.JobsRunning += count(j.phase == running)
		if over := j.phase == ended && j.Job.EndTime >= since; over {
			s.JobsCompleted += count(j.Job.State == model.JobComplete)
			s.JobsCanceled += count(j.Job.State == model.JobCancelled)
			s.JobsFailed += count(j.Job.State == model.JobNodeFail)
		}
	}
	return message.ResponseStats, s, nil
}

func count(one bool) uint32 {
	if one {
		return 1
	}
	return 0
}

// handleJobStates shows the states of the jobs asked for, or of all, that who asks may see. A number that no
// job has is left out.
func (c *Controller) handleJobStates(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.JobStateRequest
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	answer, now := &message.JobStates{}, time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, j := range c.jobs {
		s := model.JobStateEntry{JobID: id}
		asked := len(q.Jobs) == 0 || slices.ContainsFunc(q.Jobs, func(w model.JobSelection) bool { return w.Has(&s) })
		if !asked || !c.sees(r.Identity, j) {
			continue
		}
		s.State = c.shown(j, now).State
		answer.Jobs.List = append(answer.Jobs.List, s)
	}
	slices.SortFunc(answer.Jobs.List, func(a, b model.JobStateEntry) int { return cmp.Compare(a.JobID, b.JobID) })
	return message.ResponseJobState, answer, nil
}
