package ctld

import (
	"cmp"
	"reflect"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// These are fields of a JobDesc that this controller can't change, with their
// names in the API. Slurm changes those of waitingFields only while a job waits.
// Fields that the API does not have are missing.
var (
	waitingFields = map[string]string{
		"Contiguous": "contiguous", "CoreSpec": "core_specification", "CoresPerSocket": "cores_per_socket", "CPUsPerTask": "cpus_per_task",
		"Dependency": "dependency", "Features": "constraints", "MaxCPUs": "maximum_cpus", "MinCPUs": "minimum_cpus",
		"MinCPUsPerNode": "minimum_cpus_per_node", "MinMemory": "memory_per_node", "MinTmpDisk": "temporary_disk_per_node",
		"NTasksPerNode": "tasks_per_node", "NTasksPerSocket": "tasks_per_socket", "NumTasks": "tasks", "Prefer": "prefer",
		"Reboot": "reboot", "Shared": "shared", "SocketsPerNode": "sockets_per_node", "StdErr": "standard_error",
		"StdIn": "standard_input", "StdOut": "standard_output", "ThreadsPerCore": "threads_per_core", "WorkDir": "current_working_directory",
	}
	otherFields = map[string]string{
		"AccountingFrequency": "account_gather_frequency", "AllocNode": "allocation_node_list", "AllocRespPort": "allocation_node_port",
		"Argv": "argv", "Array": "array", "BatchFeatures": "batch_features", "BoardsPerNode": "minimum_boards_per_node",
		"BurstBuffer": "burst_buffer", "ClusterFeatures": "cluster_constraint", "Clusters": "clusters", "Container": "container",
		"ContainerID": "container_id", "CPUBind": "cpu_binding", "CPUBindType": "cpu_binding_flags", "CPUFreqGov": "cpu_frequency",
		"CPUFreqMax": "cpu_frequency", "CPUFreqMin": "cpu_frequency", "CPUsPerTRES": "cpus_per_tres", "Cron": "crontab",
		"Deadline": "deadline", "DelayBoot": "delay_boot", "Distribution": "distribution", "EndTime": "end_time",
		"Environment": "environment", "ExcNodes": "excluded_nodes", "Flags": "flags", "GroupID": "group_id", "Immediate": "immediate",
		"KillOnNodeFail": "kill_on_node_fail", "Licenses": "licenses", "MailType": "mail_type", "MailUser": "mail_user",
		"MaxNodes": "maximum_nodes", "MCSLabel": "mcs_label", "MemBind": "memory_binding", "MemBindType": "memory_binding_type",
		"MemPerTRES": "memory_per_tres", "MinNodes": "minimum_nodes", "NTasksPerBoard": "tasks_per_board",
		"NTasksPerCore": "tasks_per_core", "NTasksPerTRES": "ntasks_per_tres", "Network": "network", "OpenMode": "open_mode",
		"OtherPort": "reserve_ports", "Overcommit": "overcommit", "PlaneSize": "distribution_plane_size", "Profile": "profile",
		"ReqContext": "selinux_context", "ReqNodes": "required_nodes", "ReqSwitches": "required_switches", "Requeue": "requeue",
		"Reservation": "reservation", "Script": "script", "SiteFactor": "site_factor", "SocketsPerBoard": "minimum_sockets_per_board",
		"SpankEnvironment": "spank_environment", "TimeMin": "time_minimum", "TRESBind": "tres_bind", "TRESFreq": "tres_freq",
		"TRESPerJob": "tres_per_job", "TRESPerNode": "tres_per_node", "TRESPerSocket": "tres_per_socket", "TRESPerTask": "tres_per_task",
		"UserID": "user_id", "WaitAllNodes": "wait_all_nodes", "WaitForSwitch": "wait_for_switch", "WarnFlags": "kill_warning_flags",
		"WarnSignal": "kill_warning_signal", "WarnTime": "kill_warning_delay",
	}
)

// checkUnchangeable returns an error if a field of d is set. The argument started
// says whether the job has started.
func checkUnchangeable(d *model.JobDesc, started bool) error {
	set := setFields(*d)
	for _, name := range set {
		if field := waitingFields[name]; started && field != "" {
			return refuse(errs.Conflict, fault.JobNotPending, "the job has started, so it has no %s to change", field)
		}
	}
	for _, name := range set {
		field := cmp.Or(waitingFields[name], otherFields[name])
		if name == "MinMemory" {
			field = memoryField(d)
		}
		if field != "" {
			return refuseField(errs.Unsupported, fault.NotSupported, field, "this controller can change only %s of a job", changeableFields)
		}
	}
	if len(set) > 0 {
		return refuse(errs.Unsupported, fault.NotSupported, "this controller can change only %s of a job", changeableFields)
	}
	return nil
}

// setFields returns the names of the fields of d that are set.
func setFields(d model.JobDesc) (names []string) {
	v := reflect.ValueOf(d)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}
