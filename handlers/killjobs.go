package handlers

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"syscall"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

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
		notFound := errs.New(errs.Invalid, "the gateway's host has no user %q", schema.Shorten(k.UserName)).WithSource("#/user_name")
		notFound.Number = slurmerror.UnknownUser
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
