package handlers

import (
	"errors"
	"slices"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// fieldOfError returns the job field to which one of Slurm's error numbers
// refers. It returns "" if the number does not identify a single field.
func fieldOfError(number int) (field string) {
	switch number {
	case invalidPartition, noDefaultPartition, noPartitionGroup, partitionUnavailable, partitionNotAvailable, partitionDown:
		return "partition"
	case nodesNotInPartition, invalidNodeName:
		return "required_nodes"
	case invalidNodeCount:
		return "nodes"
	case noScript:
		return "script"
	case noUserID, invalidUserID, unknownUser:
		return "user_id"
	case noGroupID, invalidGroupID, unknownGroup:
		return "group_id"
	case badDistribution:
		return "distribution"
	case badTaskCount:
		return "tasks"
	case invalidFeature:
		return "constraints"
	case badDependency, circularDependency:
		return "dependency"
	case invalidTaskMemory:
		return "memory_per_node"
	case invalidAccount, invalidAssociation:
		return "account"
	case invalidLicenses:
		return "licenses"
	case invalidTimeLimit, noTimeLimit:
		return "time_limit"
	case reservationAccess, invalidReservation, reservationNotUsable:
		return "reservation"
	case invalidTimeValue:
		return "begin_time"
	case invalidWCKey:
		return "wckey"
	case noWorkDir:
		return "current_working_directory"
	case invalidQOS, qosThreshold:
		return "qos"
	case invalidArray:
		return "array"
	case invalidMCSLabel:
		return "mcs_label"
	case invalidNice:
		return "nice"
	case invalidTimeMinimum:
		return "time_minimum"
	case noEnvironment:
		return "environment"
	case badThreadsPerCore:
		return "threads_per_core"
	case invalidContainerID:
		return "container_id"
	}
	return ""
}

// annotateJob sets the source of a controller's error to the place of the field
// that caused the error. schedctld's text begins with the field's name, as in
// "tasks: 0 is out of range". slurmctld sends only a number. The argument at is
// the place of the job in the body.
func annotateJob(c *call, err error, d *model.JobDesc, at string) error {
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
