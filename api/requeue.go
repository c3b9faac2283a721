package api

import (
	"errors"
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// requeueFlags are the names of the options in a request to requeue jobs.
var requeueFlags = schema.Words("openapi_job_requeue_flags",
	schema.Bit("Incomplete", model.RequeueIncomplete),
	schema.Bit("Hold", model.RequeueHold),
	schema.Bit("SpecialExit", model.RequeueSpecialExit),
)

type RequeueParams struct {
	Job   string
	Flags model.Requeue
}

func requeueFlag(name string, bit model.Requeue, doc string) schema.Field[RequeueParams] {
	return flagText(name, doc, func(p *RequeueParams) *model.Requeue { return &p.Flags }, bit)
}

var requeueParams = schema.Object("", func() schema.Fields[RequeueParams] {
	return schema.Fields[RequeueParams]{
		schema.F("job_id", jobName, func(p *RequeueParams) *string { return &p.Job }, "Job id, or the id of a task such as \"12_3\"", schema.Required(0)),
		requeueFlag("Incomplete", model.RequeueIncomplete, "Requeue only a job that runs or is suspended"),
		requeueFlag("Hold", model.RequeueHold, "Hold the job after it was requeued"),
		requeueFlag("SpecialExit", model.RequeueSpecialExit, "Give the job the state SPECIAL_EXIT; requires Hold"),
	}
})

type RequeuedAnswer struct {
	Results []model.TaskResult
	Envelope
}

// Requeued declares the fields of a RequeuedAnswer.
var Requeued = enveloped("openapi_job_requeue_resp", func(a *RequeuedAnswer) *Envelope { return &a.Envelope },
	schema.F("status", taskResults, func(a *RequeuedAnswer) *[]model.TaskResult { return &a.Results }, "Result for each task of a job array; empty for other jobs", schema.Required(0)),
)

var GetJobRequeue = declare(scope.ComputeModify, requeueParams, Endpoint{
	Method: http.MethodGet, Path: "job/{job_id}/requeue", ID: "get_job_requeue", ChangingGET: true,
	Doc: "Queue a job again", Answer: Requeued, Since: V45,
	Description: "Puts a batch job back into the queue; a running job is ended first. This changes the job although the method is GET. For a job array the answer lists the result for each task.",
	AnswerDoc:   "The job was requeued; for a job array, the result for each task",
})

// RequeueRequest is a request to requeue jobs.
type RequeueRequest struct {
	Jobs  []string
	Flags model.Requeue
}

// Check returns an error if r has no jobs.
func (r *RequeueRequest) Check() error {
	if len(r.Jobs) == 0 {
		return errors.New("expected at least one job")
	}
	return nil
}

// RequeueBody declares the fields of a RequeueRequest.
var RequeueBody = schema.Object("openapi_jobs_requeue_query", func() schema.Fields[RequeueRequest] {
	return schema.Fields[RequeueRequest]{
		schema.F("jobs", schema.Named("selected_step_list", jobNames), func(r *RequeueRequest) *[]string { return &r.Jobs }, "The jobs, or tasks such as \"12_3\""),
		schema.F("flags", requeueFlags.Type, func(r *RequeueRequest) *model.Requeue { return &r.Flags }, "Options for requeueing"),
	}
})

// jobNames returns the type of a list of job ids. The client sends an array, or
// one comma-separated string. An id may also contain commas, in brackets:
// "12_[1,3]".
func jobNames() schema.Type[[]string] {
	list := csvString()
	parse, parseOne := list.Parser(schema.View{}), jobName().Parser(schema.View{})
	return schema.Simple(list.Shape(schema.View{}), list.Renderer(schema.View{}), func(r *schema.Report, doc *schema.Value, into *[]string) bool {
		if !parse(r, doc, into) {
			return false
		}
		if doc.Kind == schema.Text {
			*into = splitOutsideBrackets(doc.Text)
		}
		var name string
		for _, s := range *into {
			if !parseOne(r, &schema.Value{Kind: schema.Text, Text: s, Line: doc.Line, Column: doc.Column, Untyped: true}, &name) {
				return false
			}
		}
		return true
	})
}

// splitOutsideBrackets splits s at the commas that are not in brackets. For an
// empty string it returns no elements.
func splitOutsideBrackets(s string) (list []string) {
	if s == "" {
		return nil
	}
	start, inBrackets := 0, false
	for i := range len(s) {
		switch {
		case s[i] == '[':
			inBrackets = true
		case s[i] == ']':
			inBrackets = false
		case s[i] == ',' && !inBrackets:
			list = append(list, s[start:i])
			start = i + 1
		}
	}
	return append(list, s[start:])
}

type RequeuesAnswer struct {
	Results [][]model.TaskResult
	Envelope
}

// RequeuedJobs declares the fields of a RequeuesAnswer.
var RequeuedJobs = enveloped("openapi_jobs_requeue_resp", func(a *RequeuesAnswer) *Envelope { return &a.Envelope },
	schema.F("status", schema.Named("job_array_response_msg_ptr_list", schema.List(taskResults)), func(a *RequeuesAnswer) *[][]model.TaskResult { return &a.Results }, "The result for each job, in the order of the request", schema.Required(0)),
)

// PostJobsRequeue requeues several jobs.
var PostJobsRequeue = declare(scope.ComputeModify, noParams, Endpoint{
	Method: http.MethodPost, Path: "jobs/requeue", ID: "post_jobs_requeue",
	Doc: "Queue several jobs again", Request: RequeueBody, Answer: RequeuedJobs, Since: V45,
	Example:     `{"jobs": ["12", "13"]}`,
	Description: "Requeues several jobs, one after the other. If a job can't be requeued, the next ones are still tried. If none can be requeued, the request fails with the first error.",
	RequestDoc:  "The jobs to requeue, and options",
	AnswerDoc:   "The result for each job",
})
