package ctld

import (
	"context"
	"slices"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// handleKillJobs cancels or signals several jobs. The request names jobs,
// contains conditions that select jobs, or both. handleKillJobs treats each job
// as handleKill does. The answer lists the jobs that could not be signalled. If
// the request has the flag model.KillVerbose, the answer also lists the jobs
// that were signalled.
//
// If the request names no jobs, the conditions select only jobs that have not
// ended and that the client may see. A request that contains neither jobs nor
// conditions gets error 2173.
func (c *Controller) handleKillJobs(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
	var q message.KillJobs
	if err := r.Decode(&q); err != nil {
		return 0, nil, err
	}
	k := &q.KillJobs
	switch {
	case k.Reservation != "":
		return 0, nil, refuse(errs.Unsupported, fault.NotSupported, "this controller does not support reservations")
	case k.AdminComment != "":
		return 0, nil, refuse(errs.Unsupported, fault.NotSupported, "this controller can't comment on jobs that it cancels")
	case k.UserName != "" && !k.UserID.Set:
		user, err := c.cfg.Users.LookupUser(k.UserName)
		if errs.KindOf(err) == errs.NotFound {
			return 0, nil, refuse(errs.Invalid, fault.UnknownUser, "this machine has no user %.40q", k.UserName)
		}
		if err != nil {
			return 0, nil, err
		}
		k.UserID = model.Some(user.UID)
	}
	conditions := conditionsOf(k)
	if len(k.Jobs) == 0 && len(conditions) == 0 {
		return 0, nil, refuse(errs.Invalid, fault.NothingSelected, "neither a job nor a condition is given")
	}
	results := c.killEach(ctx, r, k, c.selectJobs(r.Identity, k, conditions))
	answer := &message.KillJobsResponse{Jobs: codec.Stream[model.KillResult]{List: results}}
	return message.ResponseKillJobs, answer, nil
}

// killTarget is a job that a request names or selects.
type killTarget struct {
	id  uint32
	err error // why the job can't be signalled, or nil
}

// selectJobs returns the jobs that meet all conditions. If k names jobs, only
// these can be selected.
func (c *Controller) selectJobs(client server.Identity, k *model.KillJobs,
	conditions []func(*model.Job) bool) (jobs []killTarget) {
	matches := func(j *model.Job) bool {
		return !slices.ContainsFunc(conditions, func(meets func(*model.Job) bool) bool { return !meets(j) })
	}
	list, _ := c.snapshot()
	if len(k.Jobs) == 0 {
		for _, r := range c.visible(client, list, nil) {
			if !r.Job.State.Ended() && matches(&r.Job) {
				jobs = append(jobs, killTarget{id: r.id()})
			}
		}
		return jobs
	}
	for _, text := range k.Jobs {
		id, err := jobID(text)
		if err != nil {
			jobs = append(jobs, killTarget{err: err})
			continue
		}
		found := c.visible(client, list, []uint32{id})
		if len(found) == 0 || matches(&found[0].Job) { // kill returns the error for an unknown job
			jobs = append(jobs, killTarget{id: id})
		}
	}
	return jobs
}

// conditionsOf returns the conditions in k, as functions that check a job.
func conditionsOf(k *model.KillJobs) (list []func(*model.Job) bool) {
	text := func(want string, field func(*model.Job) string) {
		if want != "" {
			list = append(list, func(j *model.Job) bool { return field(j) == want })
		}
	}
	text(k.Account, func(j *model.Job) string { return j.Account })
	text(k.Name, func(j *model.Job) string { return j.Name })
	text(k.Partition, func(j *model.Job) string { return j.Partition })
	text(k.QOS, func(j *model.Job) string { return j.QOS })
	text(k.WCKey, func(j *model.Job) string { return j.WCKey })
	if k.State.Set {
		list = append(list, func(j *model.Job) bool { return j.State.Base() == k.State.Number })
	}
	if k.UserID.Set {
		list = append(list, func(j *model.Job) bool { return j.UserID == k.UserID.Number })
	}
	if k.Nodes != "" {
		list = append(list, func(j *model.Job) bool {
			return j.Nodes != "" && model.HostlistHas(k.Nodes, j.Nodes)
		})
	}
	return list
}

// killEach signals jobs and returns the results for the answer to the client.
func (c *Controller) killEach(ctx context.Context, r *server.Request, k *model.KillJobs, jobs []killTarget) []model.KillResult {
	results := []model.KillResult{}
	deadline := time.Now().Add(startTimeout)
	for _, j := range jobs {
		err := j.err
		if err == nil {
			if err = context.Cause(ctx); err == nil {
				err = c.kill(r, j.id, k.Signal, k.Flags, deadline)
			}
		}
		if err == nil && k.Flags&model.KillVerbose == 0 {
			continue
		}
		result := model.KillResult{ID: model.SelectedStep{Step: model.StepID{JobID: j.id}}, RealJobID: model.Some(j.id)}
		if err != nil {
			result.Code, result.Message = fault.Number(err)
		}
		results = append(results, result)
	}
	return results
}
