package handlers

import (
	"errors"
	"net/http"
	"strings"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

func (h *handler) getJobRequeue(c *rest.Call, p *api.RequeueParams) error {
	if err := checkRequeue(p.Flags, rest.InQuery+"SpecialExit"); err != nil {
		return err
	}
	results, err := rest.MakeChange(c, p.Job, func() ([]model.TaskResult, error) {
		return h.Controller.Requeue(c.Context(), c.Credential(), p.Job, p.Flags)
	}, func(list []model.TaskResult) rest.Result { return tasksResult(p.Job, list) })
	if err != nil {
		return annotateNamed(err, "job", p.Job, rest.InPath+"job_id")
	}
	warnOfTasks(c, results)
	return rest.Send(c, http.StatusOK, api.Requeued, &api.RequeuedAnswer{Results: results, Envelope: c.Envelope()})
}

func checkRequeue(flags model.Requeue, source string) error {
	if flags&model.RequeueSpecialExit != 0 && flags&model.RequeueHold == 0 {
		return errs.New(errs.Invalid, "SpecialExit requires Hold").WithSource(source)
	}
	return nil
}

// postJobsRequeue requeues several jobs, one by one.
func (h *handler) postJobsRequeue(c *rest.Call, _ *api.NoParams) error {
	request, err := rest.ReadBody(c, api.RequeueBody)
	if err != nil {
		return err
	}
	if err := request.Check(); err != nil {
		return errs.New(errs.Invalid, "%v", err).WithSource("#/jobs")
	}
	if err := checkRequeue(request.Flags, "#/flags"); err != nil {
		return err
	}
	results, err := rest.MakeChange(c, strings.Join(request.Jobs, " "), func() ([][]model.TaskResult, error) {
		return h.requeueEach(c, request)
	}, func(lists [][]model.TaskResult) rest.Result {
		var tasks []model.TaskResult
		for _, l := range lists {
			tasks = append(tasks, l...)
		}
		return tasksResult(strings.Join(request.Jobs, " "), tasks)
	})
	if err != nil {
		return err
	}
	for _, list := range results {
		for _, t := range list {
			if t.Code != 0 {
				c.Warn("#/jobs", "%s was not requeued: %s", t.Tasks, t.Reason)
			}
		}
	}
	return rest.Send(c, http.StatusOK, api.RequeuedJobs, &api.RequeuesAnswer{Results: results, Envelope: c.Envelope()})
}

// requeueEach requeues each job and returns the results. If the controller
// refuses to requeue a job, requeueEach continues with the next one. After any
// other error it stops, and the results report the remaining jobs as not tried.
// If no job was requeued, requeueEach returns no results, only the errors about
// the jobs.
func (h *handler) requeueEach(c *rest.Call, request *api.RequeueRequest) ([][]model.TaskResult, error) {
	var lists [][]model.TaskResult
	var jobErrs rest.MultiError
	var stopErr error
	requeued := false
	for _, job := range request.Jobs {
		if stopErr != nil {
			lists = append(lists, []model.TaskResult{{Tasks: job, Code: slurmerror.Unspecified, Reason: "Not tried",
				Message: "an earlier job failed"}})
			continue
		}
		list, err := h.Controller.Requeue(c.Context(), c.Credential(), job, request.Flags)
		if err == nil {
			requeued = true
			if len(list) == 0 {
				list = []model.TaskResult{{Tasks: job, Reason: "No error"}}
			}
			lists = append(lists, list)
			continue
		}
		e, ok := errors.AsType[*errs.Error](err)
		if !ok || e.Number == 0 {
			if stopErr = err; !requeued {
				return nil, append(rest.MultiError{err}, jobErrs...)
			}
			reason := "Outcome unknown"
			if errs.KindOf(err) == errs.Unauthenticated { // the token has expired, or is revoked, and nothing was sent
				reason = "Not tried"
			}
			lists = append(lists, []model.TaskResult{{Tasks: job, Code: slurmerror.Unspecified, Reason: reason,
				Message: rest.Problem(err).Description}})
			continue
		}
		jobErrs = append(jobErrs, annotateListed(err, job))
		lists = append(lists, []model.TaskResult{{Tasks: job, Code: uint32(e.Number), Reason: h.ErrorText(e.Number),
			Message: e.Detail}})
	}
	if !requeued {
		return nil, jobErrs
	}
	return lists, nil
}

// annotateListed adds a job's id to an error about that job.
func annotateListed(err error, job string) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Source != "" || e.Number == 0 {
		return err
	}
	annotated := *e
	annotated.Message, annotated.Source = withName("job "+job, e.Message), "#/jobs"
	return &annotated
}
