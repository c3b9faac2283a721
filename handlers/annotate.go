package handlers

import (
	"errors"
	"slices"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
)

// annotateNamed adds an object's name to a daemon's error, as in "job 12: there
// is no such job", because daemons' errors rarely contain the name. The argument
// noun is the word for the object. annotateNamed also adds source, the place of
// the name in the request.
func annotateNamed(err error, noun, name, source string) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Source != "" {
		return err
	}
	switch e.Kind {
	case errs.NotFound, errs.Denied, errs.Conflict, errs.Invalid:
		annotated := *e
		if strings.HasPrefix(source, rest.InPath) && slices.Contains(unknownNames, e.Number) {
			annotated.Kind = errs.NotFound // Slurm uses the same error number whether the name is in a path or in a body
			annotated.Message = "there is no such " + noun
		}
		if e.Number == slurmerror.NoUserID { // slurmctld sends this number to a user who lacks a privilege
			annotated.Message = "you are not allowed to change it"
			if noun == "job" {
				annotated.Message = "only the job's user, operators and administrators may do this"
			}
		}
		annotated.Message, annotated.Source = withName(noun+" "+rest.Redact(schema.Shorten(name)), annotated.Message), source
		return &annotated
	}
	return err
}

// withName adds the name of an object to a message, unless the message contains
// it. Our own daemons' messages often do.
func withName(name, message string) string {
	if strings.Contains(message, name) {
		return message
	}
	return name + ": " + message
}

// unknownNames are Slurm's error numbers for unknown nodes, reservations and
// partitions.
var unknownNames = []int{slurmerror.InvalidNodeName, slurmerror.InvalidReservation, slurmerror.InvalidPartition}

// annotateUnchanged adds "nothing was changed" to a daemon's error.
func annotateUnchanged(err error) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok {
		return err
	}
	annotated := *e
	annotated.Message += "; nothing was changed"
	return &annotated
}

// annotateBlocked adds names to the error of a removal that the daemon refused.
// The names are those of the records that prevent the removal.
func annotateBlocked(err error, names []string) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok {
		return err
	}
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = strings.Join(strings.Fields(name), " ")
	}
	annotated := *e
	annotated.Message += ": " + truncateList(strings.Join(list, "; ")) + "; nothing was removed"
	return &annotated
}

// truncateList truncates a list of names so that it fits into a line of the
// audit log.
func truncateList(names string) string {
	const maxLen = 1000
	if len(names) <= maxLen {
		return names
	}
	return strings.ToValidUTF8(names[:maxLen], "") + "…"
}
