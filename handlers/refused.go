package handlers

import (
	"errors"
	"slices"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
)

// fieldOfError returns the job field to which one of Slurm's error numbers
// refers. It returns "" if the number does not identify a single field. The
// function sent reports whether the request has a field: several fields can cause
// some of the errors.
func fieldOfError(number int, sent func(field string) bool) (field string) {
	// oneOf returns the only one of the fields that the request has, "" if it has
	// several, and the first if it has none, whose default the controller refuses.
	oneOf := func(fields ...string) string {
		switch found := slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return !sent(f) }); len(found) {
		case 0:
			return fields[0]
		case 1:
			return found[0]
		}
		return ""
	}
	ifSent := func(field string) string {
		if sent(field) {
			return field
		}
		return ""
	}
	switch number {
	case slurmerror.InvalidPartition, slurmerror.NoDefaultPartition, slurmerror.NoPartitionGroup, slurmerror.PartitionUnavailable, slurmerror.PartitionNotAvailable, slurmerror.PartitionDown:
		return "partition"
	case slurmerror.NodesNotInPartition:
		return "required_nodes"
	case slurmerror.InvalidNodeName:
		return oneOf("required_nodes", "excluded_nodes")
	case slurmerror.InvalidNodeCount:
		return oneOf("nodes", "minimum_nodes", "maximum_nodes", "required_nodes")
	case slurmerror.NoScript:
		return "script"
	case slurmerror.NoUserID, slurmerror.InvalidUserID, slurmerror.UnknownUser:
		return ifSent("user_id")
	case slurmerror.NoGroupID, slurmerror.InvalidGroupID, slurmerror.UnknownGroup:
		return ifSent("group_id")
	case slurmerror.BadDistribution:
		return "distribution"
	case slurmerror.BadTaskCount:
		return oneOf("tasks", "array") // the array's limit of running tasks, in a change
	case slurmerror.InvalidFeature:
		return oneOf("constraints", "batch_features")
	case slurmerror.BadDependency, slurmerror.CircularDependency:
		return "dependency"
	case slurmerror.InvalidTaskMemory:
		return oneOf("memory_per_node", "memory_per_cpu")
	case slurmerror.InvalidAccount, slurmerror.InvalidAssociation:
		return "account"
	case slurmerror.InvalidLicenses:
		return "licenses"
	case slurmerror.InvalidTimeLimit:
		return oneOf("time_limit", "deadline")
	case slurmerror.NoTimeLimit:
		return "time_limit"
	case slurmerror.ReservationAccess, slurmerror.InvalidReservation, slurmerror.ReservationNotUsable:
		return "reservation"
	case slurmerror.InvalidTimeValue:
		return oneOf("deadline", "end_time", "begin_time")
	case slurmerror.InvalidWCKey:
		return "wckey"
	case slurmerror.NoWorkDir:
		return "current_working_directory"
	case slurmerror.InvalidQOS, slurmerror.QOSThreshold:
		return "qos"
	case slurmerror.InvalidArray:
		return "array"
	case slurmerror.InvalidMCSLabel:
		return "mcs_label"
	case slurmerror.InvalidNice:
		return "nice"
	case slurmerror.InvalidTimeMinimum:
		if sent("time_minimum") {
			return "time_minimum"
		}
		return ifSent("time_limit") // less than the job's minimum
	case slurmerror.NoEnvironment:
		return "environment"
	case slurmerror.BadThreadsPerCore:
		return "threads_per_core"
	case slurmerror.InvalidContainerID:
		return "container_id"
	}
	return ""
}

// annotateJob sets the source of a controller's error to the place of the field
// that caused the error. schedctld's text begins with the field's name, as in
// "tasks: 0 is out of range". slurmctld sends only a number. The argument at is
// the place of the job in the body, such as "#/jobs/0/".
func annotateJob(c *rest.Call, err error, at string) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Source != "" {
		return err
	}
	annotated := *e
	named, _, _ := strings.Cut(e.Detail, ": ")
	isField := func(p schema.Property) bool { return p.Name == named }
	place := strings.TrimSuffix(strings.TrimPrefix(at, "#/"), "0/") // Fields omits the numbers of records
	field := fieldOfError(e.Number, func(name string) bool { return slices.Contains(c.Fields(), place+name) })
	switch {
	case slices.ContainsFunc(api.JobDesc.Shape(c.View()).Fields, isField):
		annotated.Message, annotated.Source = e.Detail, at+named
	case e.Kind != errs.Invalid && e.Kind != errs.Denied:
		return err
	case field == "":
		annotated.Source = strings.TrimSuffix(at, "/")
	default:
		annotated.Source = at + field
	}
	return &annotated
}
