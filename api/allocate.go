package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// AllocationRequest is a request to allocate resources without running a script
// (PostJobAllocate). It describes one job, or the components of a heterogeneous
// job.
type AllocationRequest struct {
	Job    *model.JobDesc
	HetJob []model.JobDesc
}

// AllocationBody declares the fields of an AllocationRequest.
var AllocationBody = schema.Object("job_alloc_req", func() schema.Fields[AllocationRequest] {
	return schema.Fields[AllocationRequest]{
		schema.F("hetjob", schema.Named("job_desc_msg_list", schema.List(JobDesc.Type)), func(a *AllocationRequest) *[]model.JobDesc { return &a.HetJob }, "Components of a heterogeneous job, which start together"),
		schema.Set("job", JobDesc.Type, func(a *AllocationRequest, d model.JobDesc) error { a.Job = &d; return nil }, "The job"),
	}
})

// Descs returns the descriptions of the job's components, like
// Submission.Descs.
func (a *AllocationRequest) Descs() (descs []model.JobDesc, at string, err error) {
	return components(a.Job, a.HetJob, "hetjob")
}

// Allocated declares the fields of a SubmitAnswer that answers PostJobAllocate.
var Allocated = enveloped("openapi_job_alloc_resp", func(a *SubmitAnswer) *Envelope { return &a.Envelope },
	submittedID, submittedMessage,
)

// PostJobAllocate requests resources without a batch script.
var PostJobAllocate = declare(scope.ComputeCreate, noParams, Endpoint{
	Method: http.MethodPost, Path: "job/allocate", ID: "post_job_allocate",
	Doc: "Allocate resources", Request: AllocationBody, Answer: Allocated, Since: V41,
	Example:     `{"job": {"name": "hello", "time_limit": {"set": true, "number": 5}}}`,
	Description: "Creates a job that allocates resources and runs no script. The answer is sent when the job has its resources. Steps can run in the job until its time limit, or until it is cancelled. A job that has waited for five minutes is ended, and the answer is 503. If the client disconnects, the job is ended as soon as the gateway notices this. Over TCP, the gateway often notices only when it sends the answer. With immediate, a job that can't start at once is refused.",
	RequestDoc:  "Resources and settings of the job",
	AnswerDoc:   "The number of the job, which now has its resources",
})
