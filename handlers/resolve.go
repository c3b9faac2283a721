package handlers

import (
	"context"

	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// nameKind is a kind of name that the gateway's host knows.
type nameKind struct {
	name   string
	code   int // Slurm's error number for an unknown name
	lookup func(Resolver, context.Context, string) (uint32, error)
}

var (
	userNames  = nameKind{"user", slurmerror.UnknownUser, Resolver.UserID}
	groupNames = nameKind{"group", slurmerror.UnknownGroup, Resolver.GroupID}
)

// resolveName replaces a name, unless it is "", with a number. The source
// argument is the place of the name in the request.
func (h *handler) resolveName(c *rest.Call, kind nameKind, name *string, number *model.Opt[uint32], source string) error {
	if *name == "" {
		return nil
	}
	notFound := errs.New(errs.Invalid, "the gateway's host has no %s %q", kind.name, schema.Shorten(*name)).WithSource(source).WithNumber(kind.code)
	if h.Resolver == nil {
		return notFound
	}
	id, err := kind.lookup(h.Resolver, c.Context(), *name)
	switch {
	case errs.KindOf(err) == errs.NotFound:
		return notFound
	case err != nil:
		return err
	}
	*name, *number = "", model.Some(id)
	return nil
}
