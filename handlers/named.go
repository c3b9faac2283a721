package handlers

import (
	"errors"

	"schedrestd/errs"
)

// aboutNamed adds the name of what the path names to a daemon's refusal, which
// rarely has it: "job 12: there is no such job".
func aboutNamed(err error, kind, name, parameter string) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Source != "" {
		return err
	}
	switch e.Kind {
	case errs.NotFound, errs.Denied, errs.Conflict, errs.Invalid:
		told := *e
		told.Message, told.Source = kind+" "+conceal(name)+": "+e.Message, inPath+parameter
		return &told
	}
	return err
}
