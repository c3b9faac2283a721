package api

import (
	"fmt"
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// killResult declares the result of sending a signal to a job.
var killResult = schema.Object("kill_jobs_resp_job", func() schema.Fields[model.KillResult] {
	return schema.Fields[model.KillResult]{
		schema.Group("error", "Reason why the signal was not sent", schema.Fields[model.KillResult]{
			schema.F("string", schema.String, func(r *model.KillResult) *string { return &r.Reason }, "Text of the error"),
			schema.F("code", schema.Int32, func(r *model.KillResult) *uint32 { return &r.Code }, "Slurm's error number; 0 if the signal was sent", schema.Bare),
			schema.F("message", schema.String, func(r *model.KillResult) *string { return &r.Message }, "Details from the controller"),
		}),
		schema.Show("step_id", schema.String, func(r *model.KillResult) string { return selectedName(&r.ID) }, "The job, such as \"12\", \"12_3\" or \"12+1\"", schema.Required(0)),
		schema.F("job_id", number, func(r *model.KillResult) *model.Opt[uint32] { return &r.RealJobID }, "Job id of the task or component itself", schema.Bare, schema.Required(0)),
		schema.Group("federation", "Information about the federation", schema.Fields[model.KillResult]{
			schema.F("sibling", schema.String, func(r *model.KillResult) *string { return &r.Sibling }, "Cluster of the sibling job"),
		}),
	}
})

// selectedName returns the id of the object that s selects: a job, one or more
// tasks, a component, or a step.
func selectedName(s *model.SelectedStep) string {
	name := fmt.Sprint(s.Step.JobID)
	switch {
	case s.ArrayTasks.Set:
		name += "_[" + rangeList(members(&s.ArrayTasks)) + "]"
	case s.ArrayTaskID.Set:
		name += fmt.Sprintf("_%d", s.ArrayTaskID.Number)
	case s.HetOffset.Set:
		name += fmt.Sprintf("+%d", s.HetOffset.Number)
	}
	if step := stepName(s.Step.Step); step != "" {
		name += "." + step
	}
	return name
}

// SelectedJob returns the job that an id such as "12" or "12_3" selects.
func SelectedJob(id string) (s model.SelectedStep) {
	if job, err := jobSelection(id); err == nil {
		s = job.Selected()
	}
	return s
}

type KilledAnswer struct {
	Results []model.KillResult
	Envelope
}

// killResults is the field of a KilledAnswer.
var killResults = schema.F("status", schema.Named("kill_jobs_resp_msg", schema.List(killResult.Type)), func(a *KilledAnswer) *[]model.KillResult { return &a.Results }, "Jobs to which the signal was not sent; with the flag VERBOSE also the other jobs, if the controller reports them", schema.Required(0))

// Killed declares the fields of a KilledAnswer.
var Killed = enveloped("openapi_kill_job_resp", func(a *KilledAnswer) *Envelope { return &a.Envelope },
	killResults,
)

type KillParams struct {
	Job    string
	Signal model.Opt[uint16]
	Flags  model.Kill
}

var killParams = schema.Object("", func() schema.Fields[KillParams] {
	return schema.Fields[KillParams]{
		schema.F("job_id", jobName, func(p *KillParams) *string { return &p.Job }, "Job id, or the id of a task such as \"12_3\"", schema.Required(0)),
		schema.F("signal", signalNumber, func(p *KillParams) *model.Opt[uint16] { return &p.Signal }, "Name or number of the signal; default: KILL, which cancels the job"),
		schema.F("flags", joined(warnFlags), func(p *KillParams) *uint16 { return (*uint16)(&p.Flags) }, "Processes that receive the signal; words separated by commas"),
	}
})

// DeleteJob cancels a job. In versions before v0.0.42, OldDeleteJob takes its
// place.
var DeleteJob = declare(scope.ComputeCancel, killParams, Endpoint{
	Method: http.MethodDelete, Path: "job/{job_id}", ID: "delete_job",
	Doc: "Cancel a job", Answer: Killed, Since: V42,
	Description: "Cancels a job, a whole job array, or one task of it. With signal, only sends that signal. The answer is sent when the controller has accepted the request, not when the job has ended. If a single job can't be signalled, the request fails. If there are several jobs, the answer lists those that could not be signalled.",
	AnswerDoc:   "The controller has accepted the request; jobs that could not be signalled are listed",
})

// OldDeleteJob cancels a job. Its answer lists no results.
var OldDeleteJob = declare(scope.ComputeCancel, killParams, Endpoint{
	Method: http.MethodDelete, Path: "job/{job_id}", ID: "delete_job",
	Doc: "Cancel a job", Answer: Empty, Until: V42,
	Description: "Cancels a job, a whole job array, or one task of it. With signal, only sends that signal. The answer is sent when the controller has accepted the request, not when the job has ended.",
	AnswerDoc:   "The controller has accepted the request",
})
