package handlers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/errs"
	"schedrestd/model"
)

// postJobSubmit submits a batch job. Nothing is submitted when any of it can't be understood.
func (h *handler) postJobSubmit(c *call, _ *api.NoParams) error {
	request, err := readBody(c, api.SubmissionBody)
	if err != nil {
		return err
	}
	descs, at, err := request.Descs()
	if err != nil {
		return errs.New(errs.Invalid, "%v", err).WithSource(at)
	}
	if descs[0].Script == "" && descs[0].Container == "" {
		return errs.New(errs.Invalid, "there is no script").WithSource(componentAt(at, 0) + "script")
	}
	if err := prepare(c, descs, at); err != nil {
		return err
	}
	submitted, err := change(c, "", func() (*model.Submitted, error) {
		if len(descs) > 1 {
			return h.Controller.SubmitSeveral(c.ctx, c.cred, descs)
		}
		return h.Controller.Submit(c.ctx, c.cred, &descs[0])
	}, made)
	if err != nil {
		return c.aboutComponents(err, descs, at)
	}
	return send(c, http.StatusOK, api.Submit, &api.SubmitAnswer{Submitted: *submitted, Envelope: c.envelope()})
}

// componentAt is where component i of a job is in the body, whose job or list of
// components is at.
func componentAt(at string, i int) string {
	if at == "#/job" {
		return "#/job/"
	}
	return fmt.Sprintf("%s/%d/", at, i)
}

// prepare puts numbers in the place of names, and drops tokens.
func prepare(c *call, descs []model.JobDesc, at string) error {
	for i := range descs {
		if err := resolve(c, &descs[i], componentAt(at, i)); err != nil {
			return err
		}
		dropTokens(c, &descs[i], componentAt(at, i))
	}
	return nil
}

// aboutComponents is aboutJob. Of several components a controller does not say
// which it refuses.
func (c *call) aboutComponents(err error, descs []model.JobDesc, at string) error {
	if len(descs) == 1 {
		return c.aboutJob(err, &descs[0], componentAt(at, 0))
	}
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Source == "" && (e.Kind == errs.Invalid || e.Kind == errs.Denied) {
		told := *e
		told.Source = at
		return &told
	}
	return err
}

// resolve puts numbers in the place of the user's and the group's name. The name
// of the user who asks needs none: the controller knows its own number for it,
// whatever this host says.
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

// dropTokens takes tokens out of a job's environment, in either spelling, and the one that was sent whatever its
// name: jobs of others on the node, and core files, would show them long after.
func dropTokens(c *call, desc *model.JobDesc, at string) {
	before := len(desc.Environment)
	desc.Environment = slices.DeleteFunc(desc.Environment, func(v string) bool {
		return strings.HasPrefix(v, "SCHED_JWT=") || strings.HasPrefix(v, "SLURM_JWT=") ||
			c.cred.Token != "" && strings.Contains(v, c.cred.Token)
	})
	if len(desc.Environment) < before {
		c.warnings = append(c.warnings, api.Warning{Description: "tokens are not passed on to jobs: left out", Source: at + "environment/"})
	}
}
