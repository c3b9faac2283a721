package handlers

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// postJobSubmit submits a batch job. It submits nothing if any part of the body
// is invalid, or if an earlier request with the same Idempotency-Key has
// submitted the job.
func (h *handler) postJobSubmit(c *rest.Call, p *api.SubmitParams) error {
	if err := c.ReadKey(); err != nil {
		return err
	}
	request, err := rest.ReadBody(c, api.SubmissionBody)
	if err != nil {
		return err
	}
	descs, at, err := request.Descs()
	if err != nil {
		return errs.New(errs.Invalid, "%v", err).WithSource(at)
	}
	if descs[0].Script == "" && api.NeedsScript(&descs[0]) {
		return errs.New(errs.Invalid, "the job has no script").WithSource(componentAt(at, 0) + "script")
	}
	if err := h.prepareDescs(c, descs, at); err != nil {
		return err
	}
	if p.DryRun {
		return h.sendEstimate(c, descs, at)
	}
	if c.Waits() {
		if err := c.CheckScope(scope.ComputeRead); err != nil {
			return err
		}
	}
	submit := func() (*model.Submitted, error) {
		if len(descs) > 1 {
			return h.Controller.SubmitSeveral(c.Context(), c.Credential(), descs)
		}
		return h.Controller.Submit(c.Context(), c.Credential(), &descs[0])
	}
	result := submitResult
	var search *keyedSubmission
	if key := c.SearchedKey(); key != nil {
		for _, needed := range []scope.Set{scope.ComputeRead, scope.ComputeCancel} {
			if err := c.CheckScope(needed); err != nil {
				return err
			}
		}
		search = h.keyedSubmission(c, key, descs, submit)
		submit, result = search.do, search.result
	}
	submitted, err := rest.SubmitOnce(c, submit, result)
	if err != nil {
		return annotateComponents(c, err, descs, at)
	}
	if search != nil && search.found {
		c.Replayed()
	}
	h.warnOfSubmission(c, submitted, at)
	answer := api.SubmitAnswer{Submitted: *submitted, ErrorText: h.submissionText(submitted)}
	if c.Waits() {
		if answer.Jobs, err = h.followSubmitted(c, submitted.StepID.JobID); err != nil {
			return err
		}
	}
	answer.Envelope = c.Envelope()
	return rest.Send(c, http.StatusOK, api.Submit, &answer)
}

// sendEstimate answers with when and where the job would start. It submits nothing,
// so a key and a wait, which are about the submission, are refused, and a preference
// to wait is ignored.
func (h *handler) sendEstimate(c *rest.Call, descs []model.JobDesc, at string) error {
	switch {
	case c.Waits() && c.Header().Get("Preference-Applied") == "":
		return errs.New(errs.Invalid, "a dry run submits no job to wait for").WithSource(rest.InQuery + api.WaitParameter.Name)
	case c.Keyed():
		return errs.New(errs.Invalid, "a dry run can't have an Idempotency-Key, which is for a submission").WithSource(api.HeaderKey)
	}
	c.Header().Del("Preference-Applied")
	for i := range descs {
		if descs[i].JobID.Set { // the controller would take it for the number of an existing job
			return errs.New(errs.Invalid, "a dry run can't choose the number of the job").WithSource(componentAt(at, i) + "job_id")
		}
	}
	estimate, err := h.Controller.Estimate(c.Context(), c.Credential(), descs)
	if err != nil {
		return annotateComponents(c, err, descs, at)
	}
	answer := api.SubmitAnswer{Estimate: estimate, Envelope: c.Envelope()}
	answer.UserMessage = estimate.UserMessage
	return rest.Send(c, http.StatusOK, api.Submit, &answer)
}

// followSubmitted tells the client that the job was submitted, waits until the job
// has ended, or runs, and returns its records. A failure becomes a warning,
// because the job was submitted.
func (h *handler) followSubmitted(c *rest.Call, id uint32) (schema.Stream[api.JobRow], error) {
	c.Header().Set("Location", api.JobURL(c.View(), id))
	if err := c.SendHeader(http.StatusOK); err != nil {
		return nil, err
	}
	params := &api.JobParams{Job: model.JobSelection{JobID: id}}
	_, matches := partOf(params.Job)
	var recorded []model.Job
	var known bool
	err := c.Await(func() (err error) {
		if _, err := rest.Watch(c, h.recordsOfJob(c, params, matches)); err != nil {
			return err
		}
		recorded, known, err = h.awaitJob(c, params, matches)
		return err
	})
	if err == nil && (known || len(recorded) == 0) {
		_, err = h.Controller.Job(c.Context(), c.Credential(), id, jobQuery(c, model.Query{}), func(j *model.Job) error {
			if recorded = append(recorded, *j); len(recorded) >= maxRecorded {
				return errs.New(errs.TooLarge, "only the first %d records of the job are shown", maxRecorded)
			}
			return nil
		})
	}
	if err != nil {
		c.Warn(rest.InQuery+api.WaitParameter.Name, "the job was submitted, but the wait failed: %s", rest.Problem(err).Description)
	}
	return h.jobRows(recorded), nil
}

// warnOfSubmission adds the controller's remark about a job that it accepted,
// such as that the job is held.
func (h *handler) warnOfSubmission(c *rest.Call, s *model.Submitted, at string) {
	if s.ErrorCode == 0 {
		return
	}
	remark := h.submissionText(s)
	if c.Lenient(api.RemarkPrefix) {
		kind := "Job"
		if at != "#/job" {
			kind = "HetJob"
		}
		c.Warn(at, "%s submission resulted in non-zero return code: %s", kind, remark)
	}
	c.Warn(at, "%s", remark)
}

// submissionText returns Slurm's text for the controller's remark about a job
// that it accepted.
func (h *handler) submissionText(s *model.Submitted) string {
	return h.ErrorText(int(int32(s.ErrorCode)))
}

// componentAt returns the place of component i in the body. The argument at is
// the place of the job, or of the list of components.
func componentAt(at string, i int) string {
	if at == "#/job" {
		return "#/job/"
	}
	return fmt.Sprintf("%s/%d/", at, i)
}

// prepareDescs replaces names with ids, removes tokens, and removes or refuses
// what slurmstepd can't handle.
func (h *handler) prepareDescs(c *rest.Call, descs []model.JobDesc, at string) error {
	for i := range descs {
		if err := checkSpank(&descs[i], componentAt(at, i)); err != nil {
			return err
		}
		if err := h.resolve(c, &descs[i], componentAt(at, i)); err != nil {
			return err
		}
		dropTokens(c, &descs[i], componentAt(at, i))
		dropEmptyPaths(c, &descs[i], componentAt(at, i))
	}
	return nil
}

// dropEmptyPaths makes empty paths the default ones. With an empty path of the
// output slurmstepd of 26.05 crashes while it starts the job, which then counts as
// running until its time limit. With any of them scontrol and slurmrestd of 24.11
// crash when they show the job.
func dropEmptyPaths(c *rest.Call, d *model.JobDesc, at string) {
	for _, path := range []struct {
		field string
		value *model.Text
	}{{"standard_error", &d.StdErr}, {"standard_input", &d.StdIn}, {"standard_output", &d.StdOut}} {
		if *path.value == model.Emptied {
			*path.value = ""
			if !c.Lenient(api.HarmlessValue) {
				c.Warn(at+path.field, "empty, ignored")
			}
		}
	}
}

// annotateComponents calls annotateJob if the job has only one component. For a
// job with several components, the controller does not report which one it
// rejects, so annotateComponents adds the place of the whole list to the error.
func annotateComponents(c *rest.Call, err error, descs []model.JobDesc, at string) error {
	if len(descs) == 1 {
		return annotateJob(c, err, componentAt(at, 0))
	}
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Source == "" && (e.Kind == errs.Invalid || e.Kind == errs.Denied) {
		annotated := *e
		annotated.Source = at
		return &annotated
	}
	return err
}

// resolve replaces the names of the job's user and group with ids. If the user
// is the client itself, resolve only removes the name, because the controller
// knows the client's id.
func (h *handler) resolve(c *rest.Call, d *model.JobDesc, at string) error {
	if d.UserName != "" && d.UserName == c.User() {
		d.UserName = ""
	}
	if err := h.resolveName(c, userNames, &d.UserName, &d.UserID, at+"user_id"); err != nil {
		return err
	}
	return h.resolveName(c, groupNames, &d.GroupName, &d.GroupID, at+"group_id")
}

// dropTokens removes tokens from a job's environment: the variables SCHED_JWT
// and SLURM_JWT, and any variable that contains the request's token. Otherwise,
// other users on the node, or anyone who reads a core file, could find the
// token.
func dropTokens(c *rest.Call, desc *model.JobDesc, at string) {
	before := len(desc.Environment)
	desc.Environment = slices.DeleteFunc(desc.Environment, func(v string) bool {
		return strings.HasPrefix(v, "SCHED_JWT=") || strings.HasPrefix(v, "SLURM_JWT=") ||
			c.Credential().Token != "" && strings.Contains(v, c.Credential().Token)
	})
	if len(desc.Environment) < before {
		c.Warn(at+"environment/", "omitted: tokens are not passed to jobs")
	}
}

// submitResult returns the result of a submission.
func submitResult(s *model.Submitted) rest.Result {
	return rest.Result{Objects: strconv.FormatUint(uint64(s.StepID.JobID), 10), Number: s.ErrorCode}
}
