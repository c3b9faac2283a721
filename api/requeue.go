package api

import (
	"errors"
	"net/http"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// requeueFlags are the words for how jobs are queued again.
var requeueFlags = schema.Words("openapi_job_requeue_flags",
	schema.Bit("Incomplete", model.RequeueIncomplete),
	schema.Bit("Hold", model.RequeueHold),
	schema.Bit("SpecialExit", model.RequeueSpecialExit),
)

// RequeueParams are the parameters of GetJobRequeue.
type RequeueParams struct {
	Job   string
	Flags model.Requeue
}

func requeueFlag(name string, bit model.Requeue, doc string) schema.Field[RequeueParams] {
	return flagText(name, doc, func(p *RequeueParams) *model.Requeue { return &p.Flags }, bit)
}

var requeueParams = schema.Object("",
	schema.F("job_id", jobName, func(p *RequeueParams) *string { return &p.Job }, "Number of the job, or of a task as \"12_3\"", schema.Required(0)),
	requeueFlag("Incomplete", model.RequeueIncomplete, "Only if it runs or is suspended"),
	requeueFlag("Hold", model.RequeueHold, "Hold it back once it is queued"),
	requeueFlag("SpecialExit", model.RequeueSpecialExit, "Mark it as a special exit; only with Hold"),
)

// RequeuedAnswer answers GetJobRequeue.
type RequeuedAnswer struct {
	Results []model.TaskResult
	Envelope
}

// Requeued is the table of a RequeuedAnswer.
var Requeued = enveloped("openapi_job_requeue_resp", func(a *RequeuedAnswer) *Envelope { return &a.Envelope },
	schema.F("status", taskResults, func(a *RequeuedAnswer) *[]model.TaskResult { return &a.Results }, "What became of the tasks of an array; empty for a job that is none", schema.Required(0)),
)

// GetJobRequeue queues a job again.
var GetJobRequeue = declare(requeueParams, Endpoint{
	Method: http.MethodGet, Path: "job/{job_id}/requeue", ID: "get_job_requeue", Changes: true,
	Doc: "Queue a job again", Answer: Requeued, Since: V45,
	About:   "Ends a batch job that runs and puts it back into the queue, or queues one again that has ended. It is a change, although its method is GET. Of an array, the answer has what became of its tasks.",
	Returns: "What became of the tasks of an array: the job is queued",
})

// Requeues is the body of a request to queue jobs again.
type Requeues struct {
	Jobs  []string
	Flags model.Requeue
}

// Check returns what is wrong with r as a whole.
func (r *Requeues) Check() error {
	if len(r.Jobs) == 0 {
		return errors.New("expected at least one job")
	}
	return nil
}

// RequeueBody is the table of a Requeues.
var RequeueBody = schema.Object("openapi_jobs_requeue_query",
	schema.F("jobs", schema.Named("selected_step_list", jobNames), func(r *Requeues) *[]string { return &r.Jobs }, "The jobs, or tasks as \"12_3\""),
	schema.F("flags", requeueFlags.Type, func(r *Requeues) *model.Requeue { return &r.Flags }, "How they are queued"),
)

// jobNames is an array of the names of jobs, or one text with commas between
// them.
func jobNames() schema.Type[[]string] {
	list := csvString()
	parse, one := list.Parser(schema.View{}), jobName().Parser(schema.View{})
	return schema.Simple(list.Shape(schema.View{}), list.Renderer(schema.View{}), func(r *schema.Report, doc *schema.Value, into *[]string) bool {
		if !parse(r, doc, into) {
			return false
		}
		if doc.Kind == schema.Text && !strings.Contains(doc.Text, "[") {
			*into = commaList(doc.Text)
		}
		var name string
		for _, s := range *into {
			if !one(r, &schema.Value{Kind: schema.Text, Text: s, Line: doc.Line, Column: doc.Column, Untyped: true}, &name) {
				return false
			}
		}
		return true
	})
}

// RequeuesAnswer is the body of the answer to PostJobsRequeue.
type RequeuesAnswer struct {
	Results [][]model.TaskResult
	Envelope
}

// RequeuedJobs is the table of a RequeuesAnswer.
var RequeuedJobs = enveloped("openapi_jobs_requeue_resp", func(a *RequeuesAnswer) *Envelope { return &a.Envelope },
	schema.F("status", schema.Named("job_array_response_msg_ptr_list", schema.List(taskResults)), func(a *RequeuesAnswer) *[][]model.TaskResult { return &a.Results }, "What became of each job, in the order of the request", schema.Required(0)),
)

// PostJobsRequeue queues several jobs again.
var PostJobsRequeue = declare(noParams, Endpoint{
	Method: http.MethodPost, Path: "jobs/requeue", ID: "post_jobs_requeue",
	Doc: "Queue several jobs again", Request: RequeueBody, Answer: RequeuedJobs, Since: V45,
	About:   "Does to each job what its own requeue does, one after the other. A job that is refused does not keep the next from being queued. When all are refused, the first refusal is the error.",
	Takes:   "Which jobs, and how",
	Returns: "What became of each job",
})
