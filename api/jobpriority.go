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

// JobPriorityRow is the priority of a waiting job.
type JobPriorityRow struct {
	*model.JobPriority
	User string // name or uid
}

// jobPriority declares the fields of a JobPriorityRow.
var jobPriority = schema.Object("job_priority", func() schema.Fields[JobPriorityRow] {
	part := func(name string, at func(*JobPriorityRow) *float64, doc string) schema.Field[JobPriorityRow] {
		return schema.F(name, schema.Float, at, doc, schema.Bare)
	}
	return schema.Fields[JobPriorityRow]{
		schema.F("job_id", schema.Int32, func(p *JobPriorityRow) *uint32 { return &p.StepID.JobID }, "Number of the job; for tasks that still wait together, of their array", schema.Bare),
		schema.F("user_name", schema.String, func(p *JobPriorityRow) *string { return &p.User }, "User of the job"),
		schema.F("account", schema.String, func(p *JobPriorityRow) *string { return &p.Account }, "Account that the job is charged to"),
		schema.F("partition", schema.String, func(p *JobPriorityRow) *string { return &p.Partition }, "Partition to which this priority applies"),
		schema.F("qos", schema.String, func(p *JobPriorityRow) *string { return &p.QOS }, "Quality of service to which this priority applies"),
		schema.Show("priority", schema.Int64, func(p *JobPriorityRow) uint64 { return uint64(p.Total()) }, "Priority: the sum of all parts, at least 1", schema.Bare),
		schema.Show("set", schema.Boolean, func(p *JobPriorityRow) bool { return p.Direct > 0 }, "Whether the priority was set for this job; then all parts are 0"),
		schema.Group("parts", "Parts of the priority. Except site and nice, each is the product of a factor and its weight in the configuration", schema.Fields[JobPriorityRow]{
			part("age", func(p *JobPriorityRow) *float64 { return &p.Age }, "For the time that the job has waited"),
			part("association", func(p *JobPriorityRow) *float64 { return &p.Association }, "Of the association of user and account"),
			part("fairshare", func(p *JobPriorityRow) *float64 { return &p.FairShare }, "Of the fair share"),
			part("job_size", func(p *JobPriorityRow) *float64 { return &p.JobSize }, "For the size of the job"),
			part("partition", func(p *JobPriorityRow) *float64 { return &p.PartitionPart }, "Of the partition"),
			part("qos", func(p *JobPriorityRow) *float64 { return &p.QOSPart }, "Of the quality of service"),
			schema.Show("tres", schema.Named("job_priority_tres_list", schema.List(tresFloatType.Type)), priorityTRES, "For each trackable resource that the job has requested"),
			schema.Show("site", schema.Int64, func(p *JobPriorityRow) int64 { return withoutOffset(p.Direct, p.Site) }, "Number that the site has set", schema.Bare),
			schema.Show("nice", schema.Int64, func(p *JobPriorityRow) int64 { return withoutOffset(p.Direct, p.Nice) }, "Number that is subtracted", schema.Bare),
		}),
	}
})

// withoutOffset returns the value of a number that is offset by NiceOffset. A
// priority that was set has no such number.
func withoutOffset(direct float64, n uint32) int64 {
	if direct > 0 {
		return 0
	}
	return signed(n)
}

// priorityTRES returns the parts of the resources, except those that are 0.
func priorityTRES(p *JobPriorityRow) (parts []tresFloat) {
	for _, t := range tresList[tresFloat](p.TRESNames, p.TRES) {
		if t.value != 0 {
			parts = append(parts, t)
		}
	}
	return parts
}

// JobPrioritiesAnswer is an answer with the priorities of jobs.
type JobPrioritiesAnswer struct {
	Priorities schema.Stream[JobPriorityRow]
	Envelope
}

// JobPriorities declares the fields of a JobPrioritiesAnswer.
var JobPriorities = enveloped("openapi_job_priorities_resp", func(a *JobPrioritiesAnswer) *Envelope { return &a.Envelope },
	schema.F("priorities", schema.Named("job_priority_list", schema.StreamOf(jobPriority.Type)), func(a *JobPrioritiesAnswer) *schema.Stream[JobPriorityRow] { return &a.Priorities }, "The priorities", schema.Required(0)),
)

// JobPrioritiesParams are the parameters of GetJobPriorities: filters, as for a
// list of jobs.
type JobPrioritiesParams struct {
	Jobs       []jobRange
	Users      nameSet // names or uids
	Accounts   recordNames
	Partitions nameSet
	QOS        recordNames
}

var jobPrioritiesParams = schema.Object("", func() schema.Fields[JobPrioritiesParams] {
	return schema.Fields[JobPrioritiesParams]{
		schema.F("job_id", jobNumbers, func(p *JobPrioritiesParams) *[]jobRange { return &p.Jobs }, "Numbers of jobs or ranges such as \"12-20\", separated by commas; default: all waiting jobs"),
		filterTexts("users", "Users, by name or uid", func(p *JobPrioritiesParams) *nameSet { return &p.Users }),
		filterTexts("account", "Accounts that the jobs are charged to", func(p *JobPrioritiesParams) *recordNames { return &p.Accounts }),
		filterTexts("partition", "Partitions", func(p *JobPrioritiesParams) *nameSet { return &p.Partitions }),
		filterTexts("qos", "Qualities of service", func(p *JobPrioritiesParams) *recordNames { return &p.QOS }),
	}
})

// jobNumbers returns the type of a list of numbers of jobs, and of ranges of them.
// It refuses tasks and components, because the controller reports priorities only
// by the numbers.
func jobNumbers() schema.Type[[]jobRange] {
	return asList(func(s string) (list []jobRange, err error) {
		for _, word := range commaList(s) {
			r, err := parseJobRange(strings.TrimSpace(word))
			if err == nil && (r.ArrayTaskID.Set || r.HetOffset.Set) {
				err = fmt.Errorf("expected a number such as 12, got %q; the field job_id of this job is its number", schema.Shorten(word))
			}
			if err != nil {
				return nil, err
			}
			list = append(list, r)
		}
		return list, nil
	})
}

// Match reports whether the filters select the row.
func (p *JobPrioritiesParams) Match(row *JobPriorityRow) bool {
	id := row.StepID.JobID
	return oneMatches(p.Jobs, func(r jobRange) bool { return r.JobID <= id && id <= r.last }) &&
		(len(p.Users) == 0 || p.Users[row.User] || p.Users[strconv.FormatUint(uint64(row.UserID), 10)]) &&
		p.Accounts.has(row.Account) && p.Partitions.has(row.Partition) && p.QOS.has(row.QOS)
}

var GetJobPriorities = declare(scope.ComputeRead, jobPrioritiesParams, Endpoint{
	Method: http.MethodGet, Path: "jobs/priority/", ID: "get_jobs_priority",
	Doc: "Show the priorities of waiting jobs", Answer: JobPriorities,
	Description: "Returns the priority of each waiting job, and the parts that it is the sum of, as sprio does. A job that may run in several partitions or qualities of service has a record for each. " +
		"Jobs that are held, or can't start yet because of their begin time, have none. The configuration (`conf`) contains the weights. It needs Slurm 23.02 or newer. With `Accept: text/csv` the answer is a table of the records.",
	AnswerDoc:  "The priorities",
	SlurmSince: slurmNever, SchedOnly: true, CSV: true,
})
