package handlers

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"syscall"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// deleteJob cancels a job, or sends it the signal that the request contains.
func (h *handler) deleteJob(c *rest.Call, p *api.KillParams) error {
	results, err := rest.MakeChange(c, p.Job, func() ([]model.KillResult, error) {
		list, err := h.Controller.KillEach(c.Context(), c.Credential(), p.Job, p.Signal.Or(uint16(syscall.SIGKILL)), killFlags(p))
		gone, ok := goneJob(c, err)
		if ok && len(list) == 0 {
			list = []model.KillResult{{Code: uint32(gone.Number), Reason: h.ErrorText(gone.Number), Message: gone.Message, ID: api.SelectedJob(p.Job)}}
		}
		if ok {
			err = nil
		}
		return list, err
	}, func(list []model.KillResult) rest.Result {
		if len(list) == 0 { // without VERBOSE the list has only failures
			return rest.Result{Objects: p.Job}
		}
		return signalResult(list)
	})
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.Killed, &api.KilledAnswer{Results: results, Envelope: c.Envelope()})
}

// oldDeleteJob implements deleteJob for versions before v0.0.42.
func (h *handler) oldDeleteJob(c *rest.Call, p *api.KillParams) error {
	var gone *errs.Error
	_, err := rest.MakeChange(c, p.Job, func() (string, error) {
		err := h.Controller.Kill(c.Context(), c.Credential(), p.Job, p.Signal.Or(uint16(syscall.SIGKILL)), killFlags(p))
		var ok bool
		if gone, ok = goneJob(c, err); ok {
			err = nil
		}
		return p.Job, err
	}, func(job string) rest.Result {
		if gone != nil {
			return rest.Result{Objects: job, Number: uint32(gone.Number), Code: "partial"}
		}
		return rest.Result{Objects: job}
	})
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.Empty, &api.EmptyAnswer{Envelope: c.Envelope()})
}

// killFlags returns the flags for the signal. By default, all processes of the
// job get the signal.
func killFlags(p *api.KillParams) model.Kill {
	if p.Flags == 0 {
		return model.KillFullJob
	}
	return p.Flags
}

// goneJob returns err if its reason is that the job to cancel has ended or is
// unknown, and if the client may expect a success.
func goneJob(c *rest.Call, err error) (e *errs.Error, ok bool) {
	if !isGone(err) || !c.Lenient(api.GoneJob) {
		return nil, false
	}
	return errors.AsType[*errs.Error](err)
}

// isGone reports whether the reason of err is that the job to cancel has ended
// or is unknown.
func isGone(err error) bool {
	e, ok := errors.AsType[*errs.Error](err)
	return ok && (e.Number == slurmerror.InvalidJobID || e.Number == slurmerror.AlreadyDone)
}

// deleteJobs cancels the jobs that a body selects, or sends them another
// signal. It refuses a body without a condition, because slurmctld would then
// select all pending jobs.
func (h *handler) deleteJobs(c *rest.Call, _ *api.NoParams) error {
	k, err := rest.ReadBodyInto(c, api.KillJobsBody, &model.KillJobs{Signal: uint16(syscall.SIGKILL)})
	if err != nil {
		return err
	}
	if reflect.DeepEqual(*k, model.KillJobs{Flags: k.Flags, Signal: k.Signal}) || len(k.Jobs) == 0 && k.Jobs != nil {
		return errs.New(errs.Invalid, "cancel jobs: the body has neither jobs nor another condition").WithSource("#").
			WithHint("set jobs, or at least one of account, job_name, job_state, nodes, partition, qos, reservation, " +
				"user_name and wckey")
	}
	if err := h.resolveKilledUser(c, k); err != nil {
		return err
	}
	if k.Flags == 0 {
		k.Flags = model.KillFullJob
	}
	object := strings.Join(k.Jobs, " ")
	if object == "" {
		object = conditions(k)
	}
	results, err := rest.MakeChange(c, object, func() ([]model.KillResult, error) {
		return h.Controller.KillJobs(c.Context(), c.Credential(), k)
	}, signalResult)
	if err != nil {
		return err
	}
	for _, r := range results {
		if r.Code != 0 {
			c.Warn("#/jobs", "job %s was not signalled: %s", jobName(&r), r.Reason)
		}
	}
	return rest.Send(c, http.StatusOK, api.JobsKilled, &api.KilledAnswer{Results: results, Envelope: c.Envelope()})
}

// resolveKilledUser ensures that a request for the jobs of a user contains both
// the number and the name of this user. If slurmctld got only the number, it
// would ignore the number, and apply the other conditions to the jobs of all
// users.
func (h *handler) resolveKilledUser(c *rest.Call, k *model.KillJobs) error {
	if k.UserName != "" {
		notFound := errs.New(errs.Invalid, "the gateway's host has no user %q", schema.Shorten(k.UserName)).WithSource("#/user_name").WithNumber(slurmerror.UnknownUser)
		if h.Resolver == nil {
			return notFound
		}
		id, err := h.Resolver.UserID(c.Context(), k.UserName)
		switch {
		case errs.KindOf(err) == errs.NotFound:
			return notFound
		case err != nil:
			return err
		case k.UserID.Set && k.UserID.Number != id:
			return errs.New(errs.Invalid, "user_id and user_name name different users").WithSource("#/user_name")
		}
		k.UserID = model.Some(id)
		return nil
	}
	if k.UserID.Set {
		// The controller compares only the number, so any text can serve as the
		// name.
		k.UserName = fmt.Sprint(k.UserID.Number)
	}
	return nil
}

// conditions returns the conditions of a body that selects jobs without listing
// them. The text is for the audit log.
func conditions(k *model.KillJobs) string {
	var list []string
	for _, f := range []struct{ name, value string }{
		{"account", k.Account}, {"job_name", k.Name}, {"partition", k.Partition}, {"qos", k.QOS}, {"reservation", k.Reservation},
		{"user", k.UserName}, {"wckey", k.WCKey}, {"nodes", k.Nodes},
	} {
		if f.value != "" {
			list = append(list, f.name+"="+f.value)
		}
	}
	if k.State.Set {
		list = append(list, fmt.Sprintf("job_state=%d", k.State.Number))
	}
	return strings.Join(list, " ")
}

// signalResult returns the Result of a request to signal several jobs. The
// daemon may have refused to signal some of them.
func signalResult(list []model.KillResult) (r rest.Result) {
	var ids []string
	for _, k := range list {
		id := jobName(&k)
		if k.Code != 0 {
			id += ":" + strconv.FormatUint(uint64(k.Code), 10)
			if r.Number == 0 {
				r.Number, r.Code = k.Code, "partial"
			}
		}
		ids = append(ids, id)
	}
	r.Objects = strings.Join(ids, " ")
	return r
}

// jobName returns the id of a job that was signalled, such as "12", "12_3" or
// "12+1".
func jobName(k *model.KillResult) string {
	id := strconv.FormatUint(uint64(k.ID.Step.JobID), 10)
	switch {
	case k.ID.ArrayTaskID.Set:
		id += "_" + strconv.FormatUint(uint64(k.ID.ArrayTaskID.Number), 10)
	case k.ID.HetOffset.Set:
		id += "+" + strconv.FormatUint(uint64(k.ID.HetOffset.Number), 10)
	}
	return id
}
