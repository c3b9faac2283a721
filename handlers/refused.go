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
	"schedrestd/model"
)

// fieldOfError returns the job field to which one of Slurm's error numbers
// refers. It returns "" if the number does not identify a single field.
func fieldOfError(number int) (field string) {
	switch number {
	case slurmerror.InvalidPartition, slurmerror.NoDefaultPartition, slurmerror.NoPartitionGroup, slurmerror.PartitionUnavailable, slurmerror.PartitionNotAvailable, slurmerror.PartitionDown:
		return "partition"
	case slurmerror.NodesNotInPartition, slurmerror.InvalidNodeName:
		return "required_nodes"
	case slurmerror.InvalidNodeCount:
		return "nodes"
	case slurmerror.NoScript:
		return "script"
	case slurmerror.NoUserID, slurmerror.InvalidUserID, slurmerror.UnknownUser:
		return "user_id"
	case slurmerror.NoGroupID, slurmerror.InvalidGroupID, slurmerror.UnknownGroup:
		return "group_id"
	case slurmerror.BadDistribution:
		return "distribution"
	case slurmerror.BadTaskCount:
		return "tasks"
	case slurmerror.InvalidFeature:
		return "constraints"
	case slurmerror.BadDependency, slurmerror.CircularDependency:
		return "dependency"
	case slurmerror.InvalidTaskMemory:
		return "memory_per_node"
	case slurmerror.InvalidAccount, slurmerror.InvalidAssociation:
		return "account"
	case slurmerror.InvalidLicenses:
		return "licenses"
	case slurmerror.InvalidTimeLimit, slurmerror.NoTimeLimit:
		return "time_limit"
	case slurmerror.ReservationAccess, slurmerror.InvalidReservation, slurmerror.ReservationNotUsable:
		return "reservation"
	case slurmerror.InvalidTimeValue:
		return "begin_time"
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
		return "time_minimum"
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
// the place of the job in the body.
func annotateJob(c *rest.Call, err error, d *model.JobDesc, at string) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Source != "" {
		return err
	}
	annotated := *e
	named, _, _ := strings.Cut(e.Detail, ": ")
	isField := func(p schema.Property) bool { return p.Name == named }
	field := fieldOfError(e.Number)
	switch {
	case slices.ContainsFunc(api.JobDesc.Shape(c.View()).Fields, isField):
		annotated.Message, annotated.Source = e.Detail, at+named
	case e.Kind != errs.Invalid && e.Kind != errs.Denied:
		return err
	case field == "", field == "time_limit" && d.Deadline != 0: // Slurm uses the same number for a time limit and a deadline
		annotated.Source = strings.TrimSuffix(at, "/")
	case field == "memory_per_node" && d.MinMemory.Number&model.MemPerCPU != 0:
		annotated.Source = at + "memory_per_cpu"
	default:
		annotated.Source = at + field
	}
	return &annotated
}
