package api

import (
	"net/http"
	"strconv"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// JobUpdate declares the fields of a change to a job: those of a job
// description. It warns about fields that no controller uses in a change.
var JobUpdate = schema.Change("job_desc_msg", func() schema.Fields[model.JobDesc] {
	fields := descFields()
	for i, f := range fields {
		switch name := schema.Name(f); {
		case name == "environment": // older releases of Slurm required it in every change
			fields[i] = schema.HarmlessWarning(f, noEffectOnJob)
		case unchangeable[name]:
			fields[i] = schema.Warning(f, noEffectOnJob)
		case name == "flags":
			fields[i] = schema.F("flags", changedFlags, func(d *model.JobDesc) *uint64 { return &d.Flags }, "Flags of the job")
		}
	}
	return fields
})

const noEffectOnJob = "has no effect on an existing job, unless the site's submit policy uses it"

// changedFlags returns the type of the flags in a change of a job.
func changedFlags() schema.Type[uint64] { return changedFlagsType{jobFlags.Type()} }

type changedFlagsType struct{ schema.Type[uint64] }

// changeableFlags are the flags that slurmctld uses in a change: JOB_NTASKS_SET,
// RESET_ACCRUE_TIME and TASKS_CHANGED.
const changeableFlags uint64 = 1<<14 | 1<<21 | 1<<34

func (t changedFlagsType) Parser(v schema.View) func(*schema.Report, *schema.Value, *uint64) bool {
	parse := t.Type.Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *uint64) bool {
		if !parse(r, doc, into) {
			return false
		}
		if lost := *into &^ changeableFlags; lost != 0 {
			r.Warn(doc, "%s "+noEffectOnJob, strings.Join(jobFlags.Names(lost), ", "))
		}
		return true
	}
}

// unchangeable contains the fields of a job description that slurmctld ignores
// in a change (_update_job in 24.11 and 26.05). It passes them to the site's
// policy, so they are sent.
var unchangeable = map[string]bool{
	"account_gather_frequency": true, "allocation_node_list": true, "allocation_node_port": true, "argv": true,
	"batch_features": true, "container": true, "container_id": true, "cpu_binding": true, "cpu_binding_flags": true,
	"cpu_frequency": true, "crontab": true, "distribution": true, "distribution_plane_size": true,
	"group_id": true, "immediate": true, "kill_on_node_fail": true, "kill_warning_delay": true, "kill_warning_flags": true,
	"kill_warning_signal": true, "memory_binding": true, "memory_binding_type": true, "memory_update_delay": true,
	"memory_update_margin": true, "minimum_boards_per_node": true, "minimum_sockets_per_board": true, "oom_kill_step": true,
	"open_mode": true, "overcommit": true, "profile": true, "reserve_ports": true, "resv_mpi_ports": true, "rlimits": true,
	"script": true, "segment_size": true, "selinux_context": true, "spank_environment": true, "tasks_per_board": true,
	"tasks_per_core": true, "wait_all_nodes": true, "x11": true, "x11_magic_cookie": true, "x11_target_host": true,
	"x11_target_port": true,
}

// taskResult declares the result of a change to some tasks of an array. All
// these tasks have the same result.
var taskResult = schema.Object("job_array_response_msg_entry", func() schema.Fields[model.TaskResult] {
	return schema.Fields[model.TaskResult]{
		schema.Show("job_id", schema.Int32, func(r *model.TaskResult) uint32 { return leadingNumber(r.Tasks) }, "Number of the job", schema.Bare),
		schema.F("step_id", schema.String, func(r *model.TaskResult) *string { return &r.Tasks }, "The tasks, such as \"12_[1-3]\""),
		schema.F("error", schema.String, func(r *model.TaskResult) *string { return &r.Reason }, "Text for error_code"),
		schema.F("error_code", schema.Int32, func(r *model.TaskResult) *uint32 { return &r.Code }, "Slurm's error number; 0 on success", schema.Bare),
		schema.F("why", schema.String, func(r *model.TaskResult) *string { return &r.Message }, "Details from the controller"),
	}
})

var taskResults = schema.Named("job_array_response_array", schema.List(taskResult.Type))

func leadingNumber(s string) uint32 {
	if end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		s = s[:end]
	}
	n, _ := strconv.ParseUint(s, 10, 32) // 0 if s is not a number
	return uint32(n)
}

type UpdatedAnswer struct {
	Job     string
	Results []model.TaskResult
	Envelope
}

// Updated declares the fields of an UpdatedAnswer.
var Updated = enveloped("openapi_job_post_response", func(a *UpdatedAnswer) *Envelope { return &a.Envelope },
	schema.F("results", taskResults, func(a *UpdatedAnswer) *[]model.TaskResult { return &a.Results }, "Tasks of an array for which the change failed; empty if all were changed"),
	schema.F("job_id", schema.String, func(a *UpdatedAnswer) *string { return &a.Job }, "Job id, as in the path", schema.Until(V42), schema.Deprecated(V41)),
	schema.Show("step_id", schema.String, func(*UpdatedAnswer) string { return "" }, "Always empty", schema.Until(V42), schema.Deprecated(V41)),
	schema.Show("job_submit_user_msg", schema.String, func(*UpdatedAnswer) string { return "" }, "Always empty", schema.Until(V42), schema.Deprecated(V41)),
)

type NamedJobParams struct{ Job string }

var namedJobParams = schema.Object("", func() schema.Fields[NamedJobParams] {
	return schema.Fields[NamedJobParams]{
		schema.F("job_id", jobName, func(p *NamedJobParams) *string { return &p.Job }, "Job id; \"12_3\" for a task, \"12+1\" for a component", schema.Required(0))}
})

var PostJob = declare(scope.ComputeModify, namedJobParams, Endpoint{
	Method: http.MethodPost, Path: "job/{job_id}", ID: "post_job",
	Doc: "Change a job", Request: JobUpdate, Answer: Updated,
	Example:     `{"comment": "rerun with more memory"}`,
	Description: "Changes those fields of a job that are in the body. The field hold holds or releases a pending job. If the path names a whole job array, all tasks are changed, and the answer lists those that could not be. If the controller rejects the change, the status is usually 422.",
	RequestDoc:  "The fields to change, as in a submission",
	AnswerDoc:   "The job was changed; for a job array, the result for each task",
})
