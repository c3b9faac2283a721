package api

import (
	"fmt"
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// killResult is what became of one of the jobs that were sent a signal.
var killResult = schema.Object("kill_jobs_resp_job",
	schema.Group("error", "Why it was not sent", []schema.Field[model.KillResult]{
		schema.F("string", schema.String, func(r *model.KillResult) *string { return &r.Reason }, "What the number means"),
		schema.F("code", schema.Int32, func(r *model.KillResult) *uint32 { return &r.Code }, "Slurm's number of the error; 0 when it was sent", schema.Bare),
		schema.F("message", schema.String, func(r *model.KillResult) *string { return &r.Message }, "What the controller says besides"),
	}),
	schema.Show("step_id", schema.String, func(r *model.KillResult) string { return selectedName(&r.ID) }, "The job as \"12\", \"12_3\" or \"12+1\"", schema.Required(0)),
	schema.F("job_id", number, func(r *model.KillResult) *model.Opt[uint32] { return &r.RealJobID }, "Its own number", schema.Bare, schema.Required(0)),
	schema.Group("federation", "Of a federation", []schema.Field[model.KillResult]{
		schema.F("sibling", schema.String, func(r *model.KillResult) *string { return &r.Sibling }, "Cluster that it is at"),
	}),
)

// selectedName is the name of a job, of tasks or of a component of it, and of its step.
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

// KilledAnswer is the body of the answer to DeleteJob.
type KilledAnswer struct {
	Results []model.KillResult
	Envelope
}

// Killed is the table of a KilledAnswer.
var Killed = enveloped("openapi_kill_job_resp", func(a *KilledAnswer) *Envelope { return &a.Envelope },
	schema.F("status", schema.Named("kill_jobs_resp_msg", schema.List(killResult.Type)), func(a *KilledAnswer) *[]model.KillResult { return &a.Results }, "The jobs that it was not sent to; with the flag VERBOSE the others too, where the controller tells", schema.Required(0)),
)

// KillParams are the parameters of DeleteJob.
type KillParams struct {
	Job    string
	Signal model.Opt[uint16]
	Flags  model.Kill
}

var killParams = schema.Object("",
	schema.F("job_id", jobName, func(p *KillParams) *string { return &p.Job }, "Number of the job, or of a task as \"12_3\"", schema.Required(0)),
	schema.F("signal", signalNumber, func(p *KillParams) *model.Opt[uint16] { return &p.Signal }, "Name or number of the signal to send; when missing: KILL, which cancels it"),
	schema.F("flags", joined(warnFlags), func(p *KillParams) *uint16 { return (*uint16)(&p.Flags) }, "What the signal goes to, words with commas between them"),
)

// DeleteJob cancels a job. Before v0.0.42 it is OldDeleteJob.
var DeleteJob = declare(killParams, Endpoint{
	Method: http.MethodDelete, Path: "job/{job_id}", ID: "delete_job",
	Doc: "Cancel a job", Answer: Killed, Since: V42,
	About:   "Ends a job, a task of an array or all of it; or, with signal, sends a signal and leaves the rest to the job. The answer comes when the controller has taken the request, not when the job has ended. When it is one job and it could not be done, that is the error; of several, the answer lists those.",
	Returns: "Where it could not be done: the controller has taken the request",
})

// OldDeleteJob cancels a job, and says nothing of each task.
var OldDeleteJob = declare(killParams, Endpoint{
	Method: http.MethodDelete, Path: "job/{job_id}", ID: "delete_job",
	Doc: "Cancel a job", Answer: Empty, Until: V42,
	About:   "Ends a job, a task of an array or all of it; or, with signal, sends a signal and leaves the rest to the job. The answer comes when the controller has taken the request, not when the job has ended.",
	Returns: "Nothing but the envelope: the controller has taken the request",
})
