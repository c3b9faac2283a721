package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// JobStateRow is the state of a job, a task of an array, or a component of a
// heterogeneous job.
type JobStateRow struct {
	ID    string
	State model.JobState

	number, part uint32 // of the whole job, and of the task or component in it
}

// Key returns the row's key, by which pages are ordered: by job, then by task or
// component.
func (s *JobStateRow) Key() string { return fmt.Sprintf("%010d/%010d", s.number, s.part) }

// jobStateRow declares the fields of a JobStateRow.
var jobStateRow = schema.Object("job_state_resp_job", func() schema.Fields[JobStateRow] {
	return schema.Fields[JobStateRow]{
		schema.F("job_id", schema.String, func(s *JobStateRow) *string { return &s.ID }, "Job id; \"12_3\" for a task, \"12+1\" for a component", schema.Required(0)),
		schema.F("state", jobStates.Type, func(s *JobStateRow) *model.JobState { return &s.State }, "Base state, followed by flags", schema.Required(0)),
	}
})

// EachState passes a row for every job or task in s to the function each. If s
// stands for several tasks of an array, each task gets a row of its own.
func EachState(s *model.JobStateEntry, each func(*JobStateRow) error) error {
	row := JobStateRow{State: s.State}
	if s.ArrayTasks.Set {
		for task := range members(&s.ArrayTasks) {
			row.ID, row.number, row.part = fmt.Sprintf("%d_%d", s.ArrayJobID, task), s.ArrayJobID, uint32(task)
			if err := each(&row); err != nil {
				return err
			}
		}
		return nil
	}
	switch {
	case s.HetJobID != 0:
		row.number, row.part = s.HetJobID, s.JobID-s.HetJobID
		row.ID = fmt.Sprintf("%d+%d", row.number, row.part)
	case s.ArrayJobID != 0 && s.ArrayTaskID.Set:
		row.number, row.part = s.ArrayJobID, s.ArrayTaskID.Number
		row.ID = fmt.Sprintf("%d_%d", row.number, row.part)
	case s.ArrayJobID != 0:
		row.number, row.part = s.ArrayJobID, model.NoVal32 // behind the tasks
		row.ID = fmt.Sprintf("%d_*", row.number)
	default:
		row.number = s.JobID
		row.ID = strconv.FormatUint(uint64(row.number), 10)
	}
	return each(&row)
}

// JobStatesAnswer is an answer with the states of jobs.
type JobStatesAnswer struct {
	Jobs schema.Stream[JobStateRow]
	Envelope
}

// JobStates declares the fields of a JobStatesAnswer. These are the fields that
// slurmrestd sends. Its documents promise whole jobs instead, which is wrong.
var JobStates = enveloped("openapi_job_state_resp", func(a *JobStatesAnswer) *Envelope { return &a.Envelope },
	schema.F("jobs", schema.Named("job_state_resp_msg", schema.StreamOf(jobStateRow.Type)), func(a *JobStatesAnswer) *schema.Stream[JobStateRow] { return &a.Jobs }, "The states of the jobs", schema.Required(0)),
)

// JobStatesParams are the parameters of GetJobStates.
type JobStatesParams struct{ JobFilter }

var jobStatesParams = schema.Object("", func() schema.Fields[JobStatesParams] {
	return jobFilterFields(func(p *JobStatesParams) *JobFilter { return &p.JobFilter }, jobRanges)
})

// jobSelection parses a job, task or component, such as "12", "12_3" or "12+1".
// "12_*" and "12" both select all tasks.
func jobSelection(s string) (sel model.JobSelection, err error) {
	errSyntax := fmt.Errorf("expected a job such as 12, 12_3 or 12+1, got %q", schema.Shorten(s))
	dst := &sel.HetOffset
	id, part, found := strings.Cut(s, "+")
	if !found {
		dst = &sel.ArrayTaskID
		id, part, found = strings.Cut(s, "_")
	}
	// The numbers of a federation's jobs have all 32 bits: the upper six are the
	// cluster's. The last two numbers mean "infinite" and "none".
	n, err := strconv.ParseUint(id, 10, 32)
	if err != nil || n == 0 || n >= 1<<32-2 {
		return sel, errSyntax
	}
	sel.JobID = uint32(n)
	if !found || dst == &sel.ArrayTaskID && part == "*" {
		return sel, nil
	}
	if n, err = strconv.ParseUint(part, 10, 31); err != nil {
		return sel, errSyntax
	}
	*dst = model.Some(uint32(n))
	return sel, nil
}

var GetJobStates = declare(scope.ComputeRead, jobStatesParams, Endpoint{
	Method: http.MethodGet, Path: "jobs/state/", ID: "get_jobs_state", Paged: true,
	Doc: "Show only the states of jobs", Answer: JobStates,
	Description: "Returns only the states of jobs, for clients that poll often. Pending tasks of an array are listed one by one. Unknown jobs are omitted.",
	AnswerDoc:   "The states of the jobs",
})

// InTaskList reports whether a task is in a list such as "1-3,7,10-20:2%5". It
// ignores the number after the %, which limits how many tasks may run at the
// same time.
//
// An invalid part of the list contains no task. It is not an error, because the
// list comes from a daemon and not from a client.
func InTaskList(list string, task uint32) bool {
	list, _, _ = strings.Cut(list, "%")
	for part := range strings.SplitSeq(list, ",") {
		tasks, stepText, stepped := strings.Cut(part, ":")
		from, to, ok := parseRange(tasks)
		step, err := uint64(1), error(nil)
		if stepped {
			step, err = strconv.ParseUint(stepText, 10, 32)
		}
		if n := uint64(task); ok && err == nil && step > 0 && from <= n && n <= to && (n-from)%step == 0 {
			return true
		}
	}
	return false
}
