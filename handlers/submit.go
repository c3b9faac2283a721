package handlers

import (
	"net/http"
	"slices"
	"strings"

	"schedrestd/api"
	"schedrestd/errs"
	"schedrestd/model"
)

// postJobSubmit submits a batch job. Nothing is submitted when any of it can't be understood.
func (h *handler) postJobSubmit(c *call, _ *api.NoParams) error {
	request, err := readBody(c, api.SubmissionBody)
	if err != nil {
		return err
	}
	desc, err := request.Desc()
	if err != nil {
		return errs.New(errs.Invalid, "%v", err).WithSource("#/job")
	}
	if desc.Script == "" && desc.Container == "" {
		return errs.New(errs.Invalid, "there is no script").WithSource("#/job/script")
	}
	dropTokens(c, desc)
	submitted, err := change(c, "", func() (*model.Submitted, error) { return h.Controller.Submit(c.ctx, c.cred, desc) }, made)
	if err != nil {
		return aboutJob(err)
	}
	return send(c, http.StatusOK, api.Submit, &api.SubmitAnswer{Submitted: *submitted, Envelope: c.envelope()})
}

// dropTokens takes tokens out of a job's environment, in either spelling, and the one that was sent whatever its
// name: jobs of others on the node, and core files, would show them long after.
func dropTokens(c *call, desc *model.JobDesc) {
	before := len(desc.Environment)
	desc.Environment = slices.DeleteFunc(desc.Environment, func(v string) bool {
		return strings.HasPrefix(v, "SCHED_JWT=") || strings.HasPrefix(v, "SLURM_JWT=") ||
			c.cred.Token != "" && strings.Contains(v, c.cred.Token)
	})
	if len(desc.Environment) < before {
		c.warnings = append(c.warnings, api.Warning{Description: "tokens are not passed on to jobs: left out", Source: "#/job/environment/"})
	}
}
