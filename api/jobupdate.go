package api

import (
	"net/http"
	"strconv"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// taskResult reports the outcome for some tasks of an array.
var taskResult = schema.Object("job_array_response_msg_entry",
	schema.Show("job_id", schema.Int32, func(r *model.TaskResult) uint32 { return leadingNumber(r.Tasks) }, "Number of the job", schema.Bare),
	schema.F("step_id", schema.String, func(r *model.TaskResult) *string { return &r.Tasks }, "The tasks, as \"12_[1-3]\""),
	schema.F("error", schema.String, func(r *model.TaskResult) *string { return &r.Reason }, "What error_code means"),
	schema.F("error_code", schema.Int32, func(r *model.TaskResult) *uint32 { return &r.Code }, "Slurm's number of the error; 0 when they were changed", schema.Bare),
	schema.F("why", schema.String, func(r *model.TaskResult) *string { return &r.Message }, "What the controller adds"),
)

var taskResults = schema.Named("job_array_response_array", schema.List(taskResult.Type))

func leadingNumber(s string) uint32 {
	if end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' }); end >= 0 {
		s = s[:end]
	}
	n, _ := strconv.ParseUint(s, 10, 32) // not a number: 0
	return uint32(n)
}

// UpdatedAnswer answers PostJob.
type UpdatedAnswer struct {
	Job     string
	Results []model.TaskResult
	Envelope
}

// Updated declares the fields of an UpdatedAnswer.
var Updated = enveloped("openapi_job_post_response", func(a *UpdatedAnswer) *Envelope { return &a.Envelope },
	schema.F("results", taskResults, func(a *UpdatedAnswer) *[]model.TaskResult { return &a.Results }, "Tasks of an array that fared differently; empty if all were changed"),
	schema.F("job_id", schema.String, func(a *UpdatedAnswer) *string { return &a.Job }, "The job, as the path names it", schema.Until(V42), schema.Deprecated(V41)),
	schema.Show("step_id", schema.String, func(*UpdatedAnswer) string { return "" }, "Always empty", schema.Until(V42), schema.Deprecated(V41)),
	schema.Show("job_submit_user_msg", schema.String, func(*UpdatedAnswer) string { return "" }, "Always empty", schema.Until(V42), schema.Deprecated(V41)),
)

// NamedJobParams name a job.
type NamedJobParams struct{ Job string }

var namedJobParams = schema.Object("",
	schema.F("job_id", jobName, func(p *NamedJobParams) *string { return &p.Job }, "Number of the job, of a task as \"12_3\", of a component as \"12+1\"", schema.Required(0)),
)

// PostJob changes a job.
var PostJob = declare(namedJobParams, Endpoint{
	Method: http.MethodPost, Path: "job/{job_id}", ID: "post_job",
	Doc: "Change a job", Request: JobDesc, Answer: Updated,
	About:   "Changes what the body names and leaves the rest alone. hold holds a waiting job back or releases it. Of an array that the path names whole, every task is changed; if some could not be, the answer lists them. What the controller refuses is answered with 422 or what else it says.",
	Takes:   "The fields to change, as in a submission",
	Returns: "What became of the tasks of an array: the job is changed",
})
