package handlers

import (
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// postJob changes a job. If any part of the body is invalid, or if the body
// sets no field, it changes nothing.
func (h *handler) postJob(c *rest.Call, p *api.NamedJobParams) error {
	desc, err := rest.ReadBody(c, api.JobUpdate)
	if err != nil {
		return err
	}
	if desc.JobID.Set && !strings.HasPrefix(p.Job+"_", strconv.FormatUint(uint64(desc.JobID.Number), 10)+"_") {
		return errs.New(errs.Invalid, "the path names job %s", p.Job).WithSource("#/job_id")
	}
	desc.JobID = model.Opt[uint32]{}
	if reflect.DeepEqual(*desc, model.JobDesc{}) {
		if err := noChange(c, "job", p.Job, "#"); err != nil {
			return err
		}
	}
	if err := h.resolve(c, desc, "#/"); err != nil {
		return err
	}
	dropTokens(c, desc, "#/")
	results, err := rest.MakeChange(c, p.Job, func() ([]model.TaskResult, error) {
		return h.Controller.UpdateJob(c.Context(), c.Credential(), p.Job, desc)
	}, func(list []model.TaskResult) rest.Result { return tasksResult(p.Job, list) })
	switch {
	case errs.KindOf(err) == errs.Denied && !desc.UserID.Set, errs.KindOf(err) == errs.NotFound:
		return annotateNamed(err, "job", p.Job, rest.InPath+"job_id") // the error is about the existing job
	case err != nil:
		return annotateJob(c, err, desc, "#/")
	}
	warnOfTasks(c, results)
	return rest.Send(c, http.StatusOK, api.Updated, &api.UpdatedAnswer{Job: p.Job, Results: results, Envelope: c.Envelope()})
}

// tasksResult returns the Result of a change to a job. The change may have
// failed for some of the job's tasks.
func tasksResult(job string, list []model.TaskResult) rest.Result {
	r := rest.Result{Objects: job}
	for _, t := range list {
		if t.Code == 0 {
			continue
		}
		r.Objects += fmt.Sprintf(" %s:%d", t.Tasks, t.Code)
		if r.Number == 0 {
			r.Number, r.Code = t.Code, "partial"
		}
	}
	return r
}

// warnOfTasks adds a warning for each task that was not changed.
func warnOfTasks(c *rest.Call, list []model.TaskResult) {
	for _, t := range list {
		if t.Code != 0 {
			c.Warn(rest.InPath+"job_id", "%s was not changed: %s", t.Tasks, t.Reason)
		}
	}
}
