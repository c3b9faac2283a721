package api

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// Submission is a request to submit a job (PostJobSubmit). The client sends the
// script either in the job description or in a field of the request itself.
type Submission struct {
	Script string
	Job    *model.JobDesc
	Jobs   []model.JobDesc // components of a heterogeneous job
}

// SubmissionBody declares the fields of a Submission.
var SubmissionBody = schema.Object("job_submit_req", func() schema.Fields[Submission] {
	return schema.Fields[Submission]{
		schema.F("script", schema.String, func(s *Submission) *string { return &s.Script }, "Text of the batch script", schema.Until(V43), schema.Deprecated(V41)),
		schema.F("script", schema.String, func(s *Submission) *string { return &s.Script }, "Text of the batch script", schema.Since(V43)),
		schema.F("jobs", schema.Named("job_desc_msg_list", schema.List(JobDesc.Type)), func(s *Submission) *[]model.JobDesc { return &s.Jobs }, "Components of a heterogeneous job, which start together; the first needs a script"),
		schema.Set("job", JobDesc.Type, func(s *Submission, d model.JobDesc) error { s.Job = &d; return nil }, "The job"),
	}
})

// externalJob is the flag EXTERNAL_JOB.
const externalJob uint64 = 1 << 24

// NeedsScript reports whether a job with this description needs a script. The
// steps of a job in a container, and of a job that another program runs on an
// external node, come from elsewhere.
func NeedsScript(d *model.JobDesc) bool {
	return d.Container.Empty() && d.Flags&externalJob == 0
}

// maxComponents is the largest number of components of a heterogeneous job.
const maxComponents = 128

// Descs returns complete descriptions of the job's components. A job that is
// not heterogeneous has one component. The result at is the place of the
// descriptions in the request, for use in error messages.
func (s *Submission) Descs() (descs []model.JobDesc, at string, err error) {
	if descs, at, err = components(s.Job, s.Jobs, "jobs"); err != nil {
		return nil, at, err
	}
	if first := &descs[0]; s.Script != "" {
		if first.Script != "" && first.Script != s.Script {
			return nil, at, errors.New("the script is set twice, in the job and in the request")
		}
		first.Script = s.Script
	}
	return descs, at, nil
}

// components returns the descriptions of a job's components. For a
// heterogeneous job, the request contains them in the field called listField.
// Any other job has one component, whose description is in the field "job".
func components(job *model.JobDesc, list []model.JobDesc, listField string) (descs []model.JobDesc, at string, err error) {
	switch {
	case len(list) > 0 && job != nil:
		return nil, "#/job", fmt.Errorf("job and %s can't both be set", listField)
	case len(list) > maxComponents:
		return nil, "#/" + listField, fmt.Errorf("a heterogeneous job has at most %d components", maxComponents)
	case len(list) > 0:
		for i := range list {
			if field, err := deriveEnvironment(&list[i]); err != nil {
				return nil, fmt.Sprintf("#/%s/%d/%s", listField, i, field), err
			}
		}
		return list, "#/" + listField, nil
	case list != nil:
		return nil, "#/" + listField, errors.New("the list is empty")
	case job == nil:
		return nil, "#/job", errors.New("required, but missing")
	}
	if field, err := deriveEnvironment(job); err != nil {
		return nil, "#/job/" + field, err
	}
	return []model.JobDesc{*job}, "#/job", nil
}

// SubmitAnswer is the answer to a submission.
type SubmitAnswer struct {
	model.Submitted
	ErrorText string                // Slurm's text for ErrorCode
	Jobs      schema.Stream[JobRow] // the job after the wait; nil if the request does not wait
	Estimate  *model.Estimate       // of a dry run, which submits nothing; otherwise nil
	Envelope
}

// Submit declares the fields of a SubmitAnswer.
var Submit = enveloped("openapi_job_submit_response", func(a *SubmitAnswer) *Envelope { return &a.Envelope },
	schema.F("result", submitResult.Type, func(a *SubmitAnswer) *SubmitAnswer { return a }, "Result of the submission, with the same values as the other fields", schema.Until(V42), schema.Deprecated(V41)),
	submittedID, submittedStep, submittedMessage,
	schema.OmitIf(schema.F("jobs", schema.StreamOf(Job.Type), func(a *SubmitAnswer) *schema.Stream[JobRow] { return &a.Jobs }, "The job as it was at the end of the wait; absent without the parameter wait", schema.Extension),
		func(a *SubmitAnswer) bool { return a.Jobs == nil }),
	schema.OmitIf(schema.F("estimate", jobEstimate.Type, func(a *SubmitAnswer) *model.Estimate { return a.Estimate }, "When and where the job would start; absent without the parameter dry_run", schema.Extension),
		func(a *SubmitAnswer) bool { return a.Estimate == nil }),
)

var jobEstimate = schema.Object("job_start_estimate", func() schema.Fields[model.Estimate] {
	return schema.Fields[model.Estimate]{
		schema.F("start_time", moment, func(e *model.Estimate) *model.Time { return &e.Start }, "Time at which the job would start; later if jobs with a higher priority are submitted, earlier if jobs end before their time limits", schema.Unit(UnixTime)),
		schema.F("nodes", schema.String, func(e *model.Estimate) *string { return &e.Nodes }, "Nodes on which the job would run, as a host list"),
		schema.F("partition", schema.String, func(e *model.Estimate) *string { return &e.Partition }, "Partition in which the job would run"),
		schema.F("cpus", schema.Int32, func(e *model.Estimate) *uint32 { return &e.Processors }, "Number of processors that the job would get", schema.Count),
		schema.F("preempted_jobs", schema.List(schema.Int32[uint32]), func(e *model.Estimate) *[]uint32 { return &e.Preempted }, "Numbers of the jobs that would have to make room"),
	}
})

var submitResult = schema.Object("job_submit_response_msg", func() schema.Fields[SubmitAnswer] {
	return schema.Fields[SubmitAnswer]{
		submittedID, submittedStep,
		schema.F("error_code", schema.Int32, func(a *SubmitAnswer) *uint32 { return &a.ErrorCode }, "Slurm's error number of a remark about the submission; 0 if there is none", schema.Bare),
		schema.F("error", schema.String, func(a *SubmitAnswer) *string { return &a.ErrorText }, "Slurm's text for this error; No error if there is none"),
		submittedMessage,
	}
})

var (
	submittedID = schema.F("job_id", schema.Int32, func(a *SubmitAnswer) *uint32 { return &a.StepID.JobID }, "Number of the job", schema.Bare)

	submittedStep = schema.Show("step_id", schema.String, func(a *SubmitAnswer) string { return stepName(a.StepID.Step) }, "Step id; batch for a batch script")

	submittedMessage = schema.F("job_submit_user_msg", schema.String, func(a *SubmitAnswer) *string { return &a.UserMessage }, "Message of the site's submission policy; empty if there is none")
)

// stepName returns the name of a step: its number or, for a special step, a
// word such as batch.
func stepName(o model.Opt[uint32]) string {
	switch {
	case !o.Set:
		return ""
	case o.Number == model.BatchStep:
		return "batch"
	case o.Number == model.ExternStep:
		return "extern"
	case o.Number == model.InteractiveStep:
		return "interactive"
	case o.Number == 0xfffffffd:
		return "TBD"
	}
	return strconv.FormatUint(uint64(o.Number), 10)
}

// SubmitParams are the parameters of a submission.
type SubmitParams struct{ DryRun bool }

// statedBool returns the type of a boolean parameter like boolText, but a value must be
// stated: an empty one may be a mistake, and then the job would be submitted.
func statedBool() schema.Type[bool] {
	parse := boolText().Parser(schema.View{})
	return schema.Simple(boolText().Shape(schema.View{}), func(e schema.Encoder, _ *bool) { e.Null() },
		func(r *schema.Report, v *schema.Value, into *bool) bool {
			if v.Kind == schema.Text && v.Text == "" {
				return r.Error(v, "expected true or false")
			}
			return parse(r, v, into)
		})
}

// DryRun is the name of the parameter of a submission that submits nothing.
const DryRun = "dry_run"

var submitParams = schema.Object("", func() schema.Fields[SubmitParams] {
	return schema.Fields[SubmitParams]{
		schema.F(DryRun, statedBool, func(p *SubmitParams) *bool { return &p.DryRun }, "Submit nothing: the controller only checks the job, as in a submission, and the answer is when and where it would start", schema.Extension),
	}
})

var PostJobSubmit = declare(scope.ComputeCreate, submitParams, Endpoint{
	Method: http.MethodPost, Path: "job/submit", ID: "post_job_submit",
	Doc: "Submit a batch job", Request: SubmissionBody, Answer: Submit,
	Example:     `{"job": {"name": "hello", "script": "#!/bin/sh\necho Hello from job $SLURM_JOB_ID\n", "current_working_directory": "/tmp", "standard_output": "/tmp/hello-%u-%j.out", "environment": ["PATH=/usr/bin:/bin"], "time_limit": {"set": true, "number": 5}}}`,
	Description: "Submits a batch job or, if jobs is set, a heterogeneous job of at most 128 components. The job must have a script, current_working_directory, and an environment with at least one variable. If the controller rejects the job, the status is usually 422. If the outcome is unknown, the error's code says so; check whether the job exists before you submit it again, or send an Idempotency-Key. With wait, the header comes at once, and Location contains the path of the job; the body follows when the job has ended, or the time is over.",
	Keyed:       true, Ending: true,
	RequestDoc: "The job; its script is a field of the job or of the request",
	AnswerDoc:  "The number of the job",
})
