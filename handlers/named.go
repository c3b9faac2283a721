package handlers

import (
	"errors"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/errs"
)

// aboutNamed adds the name of the changed object, and its place in the request,
// to a daemon's refusal, which rarely contains it: "job 12: there is no such
// job".
func aboutNamed(err error, kind, name, source string) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Source != "" {
		return err
	}
	switch e.Kind {
	case errs.NotFound, errs.Denied, errs.Conflict, errs.Invalid:
		told := *e
		if strings.HasPrefix(source, inPath) && (e.Number == invalidNodeName || e.Number == invalidReservation) {
			told.Kind = errs.NotFound // Slurm has one kind of error for a name in a path and in a body
		}
		told.Message, told.Source = kind+" "+conceal(schema.Shorten(name))+": "+e.Message, source
		return &told
	}
	return err
}
