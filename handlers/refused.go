package handlers

import (
	"errors"
	"slices"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/errs"
	"schedrestd/model"
)

// fieldOfError returns the field of a job to which Slurm's error number refers, or
// "" if the number may refer to several fields.
func fieldOfError(number int) (field string) {
	switch number {
	case 2000, 2001, 2003, 2015, 2070, 2101:
		return "partition"
	case 2004, 2018:
		return "required_nodes"
	case 2006:
		return "nodes"
	case 2009:
		return "script"
	case 2010, 2165, 2166:
		return "user_id"
	case 2113, 2163, 2164:
		return "group_id"
	case 2023:
		return "distribution"
	case 2025:
		return "tasks"
	case 2029:
		return "constraints"
	case 2038, 2071:
		return "dependency"
	case 2044:
		return "memory_per_node"
	case 2045, 2167:
		return "account"
	case 2048:
		return "licenses"
	case 2051, 8000:
		return "time_limit"
	case 2052, 2053, 2056:
		return "reservation"
	case 2054:
		return "begin_time"
	case 2057:
		return "wckey"
	case 2063:
		return "current_working_directory"
	case 2066, 2074:
		return "qos"
	case 2081:
		return "array"
	case 2099:
		return "mcs_label"
	case 2123:
		return "nice"
	case 2124:
		return "time_minimum"
	case 2127:
		return "environment"
	case 2132:
		return "threads_per_core"
	case 2135:
		return "container_id"
	}
	return ""
}

// annotateJob adds to a controller's error the name of the job's field that caused
// it. schedctld names the field in its text, as in "tasks: 0 is out of range";
// slurmctld only sends a number. The argument at is the place of the job in the
// body.
func (c *call) annotateJob(err error, d *model.JobDesc, at string) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Source != "" {
		return err
	}
	annotated := *e
	named, _, _ := strings.Cut(e.Detail, ": ")
	isField := func(p schema.Property) bool { return p.Name == named }
	field := fieldOfError(e.Number)
	switch {
	case slices.ContainsFunc(api.JobDesc.Shape(c.view).Fields, isField):
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
