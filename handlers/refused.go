package handlers

import (
	"errors"

	"schedrestd/errs"
)

// refused is which field of a job a controller is unhappy with, by Slurm's numbers of errors.
// Those that could be about several fields are not here.
func refused(number int) (field string) {
	switch number {
	case 2000, 2001, 2003, 2015, 2070, 2101:
		return "partition"
	case 2004, 2018:
		return "required_nodes"
	case 2005, 2069:
		return "minimum_cpus"
	case 2006, 2014:
		return "nodes"
	case 2009:
		return "script"
	case 2010, 2165, 2166:
		return "user_id"
	case 2163, 2164:
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

// aboutJob adds to a controller's refusal of a job which field it is about, where its number tells.
func aboutJob(err error) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Source != "" || e.Kind != errs.Invalid && e.Kind != errs.Denied {
		return err
	}
	told := *e
	told.Source = "#/job"
	if field := refused(e.Number); field != "" {
		told.Source += "/" + field
	}
	return &told
}
