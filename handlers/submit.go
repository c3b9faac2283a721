package handlers

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/errs"
	"schedrestd/model"
)

// postJobSubmit submits a batch job. Nothing is submitted if any part of the
// body is invalid.
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
		return errs.New(errs.Invalid, "the job has no script").WithSource("#/job/script")
	}
	if err := resolve(c, desc, "#/job/"); err != nil {
		return err
	}
	dropTokens(c, desc, "#/job/")
	submitted, err := change(c, "", func() (*model.Submitted, error) { return h.Controller.Submit(c.ctx, c.cred, desc) }, made)
	if err != nil {
		return c.aboutJob(err, desc, "#/job/")
	}
	return send(c, http.StatusOK, api.Submit, &api.SubmitAnswer{Submitted: *submitted, Envelope: c.envelope()})
}

// resolve replaces the names of user and group by ids. The name of the
// requesting user is not looked up: the controller uses its own id for that
// user.
func resolve(c *call, d *model.JobDesc, at string) error {
	if d.UserName != "" && d.UserName == c.asUser() {
		d.UserName = ""
	}
	for _, n := range []struct {
		what   string
		error  int // Slurm's number for an unknown one
		name   *string
		number *model.Opt[uint32]
		look   func(Resolver, context.Context, string) (uint32, error)
	}{
		{"user", 2166, &d.UserName, &d.UserID, Resolver.UserID},
		{"group", 2164, &d.GroupName, &d.GroupID, Resolver.GroupID},
	} {
		if *n.name == "" {
			continue
		}
		missing := errs.New(errs.Invalid, "the gateway's host has no %s %q", n.what, schema.Shorten(*n.name)).WithSource(at + n.what + "_id")
		missing.Number = n.error
		if c.h.Resolver == nil {
			return missing
		}
		id, err := n.look(c.h.Resolver, c.ctx, *n.name)
		switch {
		case errs.KindOf(err) == errs.NotFound:
			return missing
		case err != nil:
			return err
		}
		*n.name, *n.number = "", model.Some(id)
	}
	return nil
}

// dropTokens removes tokens from a job's environment: the variables in either
// spelling, and the token of this request under any name. Otherwise other
// users' jobs on the node and core files could reveal them long after.
func dropTokens(c *call, desc *model.JobDesc, at string) {
	before := len(desc.Environment)
	desc.Environment = slices.DeleteFunc(desc.Environment, func(v string) bool {
		return strings.HasPrefix(v, "SCHED_JWT=") || strings.HasPrefix(v, "SLURM_JWT=") ||
			c.cred.Token != "" && strings.Contains(v, c.cred.Token)
	})
	if len(desc.Environment) < before {
		c.warnings = append(c.warnings, api.Warning{Description: "omitted: tokens are not passed to jobs", Source: at + "environment/"})
	}
}
