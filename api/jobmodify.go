package api

import (
	"errors"
	"net/http"
	"slices"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// JobChange contains new values for the fields of a job in the accounting
// records.
type JobChange struct {
	*model.AccountingJob
	Limits []Limit[model.AccountingJob] // limits that the client sent
}

// NewJobChange returns a JobChange in which no field is set.
func NewJobChange() *JobChange {
	j := blankJobChange()
	return &j
}

func blankJobChange() JobChange {
	j := model.BlankAccountingJob()
	return JobChange{AccountingJob: &j}
}

// JobModifyBody declares the fields of a JobChange.
var JobModifyBody = schema.Object("job_modify", func() schema.Fields[JobChange] {
	return schema.Fields[JobChange]{
		schema.Group("comment", "Comments", schema.Fields[JobChange]{
			schema.F("administrator", text, func(j *JobChange) *model.Text { return &j.AdminComment }, "Comment of administrators"),
			schema.F("job", text, func(j *JobChange) *model.Text { return &j.DerivedExitText }, "Comment of the user"),
			schema.F("system", text, func(j *JobChange) *model.Text { return &j.SystemComment }, "Comment of the system"),
		}),
		schema.GetSet("derived_exit_code", exitCodeInput, func(*JobChange) (none exitCode) { return none }, setExitCode, "Exit code for all steps together"),
		schema.F("extra", text, func(j *JobChange) *model.Text { return &j.Extra }, "Any text of the site"),
		schema.Group("tres", "Trackable resources", schema.Fields[JobChange]{
			schema.GetSet("allocated", amounts, func(*JobChange) []model.TRES { return nil }, func(j *JobChange, list []model.TRES) error {
				if len(list) == 0 || slices.ContainsFunc(list, func(t model.TRES) bool { return t.Count == noLimit }) {
					return errors.New("expected the amount of at least one resource; an amount can't be removed")
				}
				at := func(j *model.AccountingJob) *string { return &j.TRESAlloc }
				j.Limits = []Limit[model.AccountingJob]{{at, list}}
				return nil
			}, "Allocated resources"),
		}),
		schema.F("wckey", text, func(j *JobChange) *model.Text { return &j.WCKey }, "Workload key"),
	}
})

// exitCodeInput returns the type of an exit code in a request. Like slurmrestd,
// its parser also accepts a number, which is the exit status of a process.
//
// To slurmrestd a return_code is a wait(2) status. So in Slurm's spelling, a
// number that is no exit code, but the status of a process that has ended with
// one, is taken for that status.
func exitCodeInput() schema.Type[exitCode] { return exitCodeInputType{exitCodeType.Type()} }

type exitCodeInputType struct{ schema.Type[exitCode] }

func (t exitCodeInputType) Parser(v schema.View) func(*schema.Report, *schema.Value, *exitCode) bool {
	parse, parseNumber := t.Type.Parser(v), number[uint32]().Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *exitCode) bool {
		ok := false
		if doc.Kind == schema.Map {
			ok = parse(r, doc, into)
		} else {
			ok = parseNumber(r, doc, &into.code)
		}
		if code := into.code.Number; v.Spelling == schema.Slurm && code > 255 && code <= 255<<8 && code&255 == 0 && !into.signal.Set {
			into.code.Number = code >> 8
		}
		return ok
	}
}

// setExitCode encodes an exit code and a signal as a wait(2) status.
func setExitCode(j *JobChange, c exitCode) error {
	if !c.code.Set && !c.signal.Set {
		return errors.New("expected a return_code, or a signal")
	}
	if c.code.Number > 255 || c.signal.Number > 127 {
		return errors.New("expected a return_code up to 255 and a signal up to 127")
	}
	j.DerivedExitCode = c.code.Number<<8 | uint32(c.signal.Number)
	return nil
}

// JobModified declares the answer of PostAccountingJob and PostAccountingJobs.
var JobModified = removed("openapi_job_modify_resp", "results", "The jobs that were changed")

// NamedAccountingJobParams select a recorded job.
type NamedAccountingJobParams struct{ Job model.JobSelection }

var namedAccountingJobParams = schema.Object("", func() schema.Fields[NamedAccountingJobParams] {
	return schema.Fields[NamedAccountingJobParams]{
		schema.F("job_id", oneJob, func(p *NamedAccountingJobParams) *model.JobSelection { return &p.Job }, "Job id; \"12_3\" for a task, \"12+1\" for a component", schema.Required(0))}
})

// PostAccountingJob changes a recorded job.
var PostAccountingJob = declare(scope.SlurmdbWrite, namedAccountingJobParams, Endpoint{
	Method: http.MethodPost, Accounting: true, Path: "job/{job_id}", ID: "post_job",
	Doc: "Change a recorded job", Request: JobModifyBody, Answer: JobModified, Since: V44,
	Example:     `{"comment": {"job": "converged after 12 steps"}}`,
	Description: "Changes the accounting record of a job of this cluster. Only the fields in the body are changed. Users may change comment, extra, wckey and derived_exit_code of their own jobs; only operators may change other fields. If there is no record of the job, the answer is 404.",
	RequestDoc:  "The fields to change",
	AnswerDoc:   "The job",
})

// JobsChange is a request to change jobs in the accounting records
// (PostAccountingJobs). All jobs in the request get the same new values.
type JobsChange struct {
	Jobs   []string
	Change *JobChange // nil if the client sent none
}

// JobsModifyBody declares the fields of a JobsChange.
var JobsModifyBody = schema.Object("openapi_job_modify_req", func() schema.Fields[JobsChange] {
	return append(schema.Fields[JobsChange]{
		schema.F("job_id_list", schema.Named("selected_step_list", jobNames), func(j *JobsChange) *[]string { return &j.Jobs }, "The jobs, or tasks such as \"12_3\""),
		schema.Set("job_rec", withInitial(JobModifyBody.Type, blankJobChange), func(j *JobsChange, change JobChange) error { j.Change = &change; return nil }, "The fields to change"),
	}, unusedEnvelope[JobsChange]()...)
})

// Selections parses the job ids in the request.
func (j *JobsChange) Selections() ([]model.JobSelection, error) {
	var list []model.JobSelection
	for _, name := range j.Jobs {
		sel, err := jobSelection(name)
		if err != nil {
			return nil, err
		}
		list = append(list, sel)
	}
	return list, nil
}

// PostAccountingJobs changes recorded jobs.
var PostAccountingJobs = declare(scope.SlurmdbWrite, noParams, Endpoint{
	Method: http.MethodPost, Accounting: true, Path: "jobs/", ID: "post_jobs",
	Doc: "Change recorded jobs", Request: JobsModifyBody, Answer: JobModified, Since: V44,
	Example:     `{"job_id_list": ["12", "13"], "job_rec": {"comment": {"job": "converged after 12 steps"}}}`,
	Description: "Changes the records of the jobs in job_id_list as POST job/{job_id} does. A request without jobs is refused, because it would change all jobs. The daemon changes all of them or none.",
	RequestDoc:  "The jobs, and the fields to change",
	AnswerDoc:   "The jobs",
})
