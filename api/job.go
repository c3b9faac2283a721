package api

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"schedrestd/api/reason"
	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// JobRow is a job, together with a Users value that translates the job's user
// and group ids to names.
type JobRow struct {
	*model.Job
	Users   Users
	Explain *reason.Facts // for the explanation of why the job waits; nil if the client wants none
}

// Job declares the fields of a job. The fields are listed in jobfields.go. This
// file contains functions that compute their values.
var Job = schema.Object("job_info", jobFields)

// wireValue returns the number that stands for o in the protocol. The protocol
// uses the largest number of type T for "unlimited", and the second largest for
// "not set".
func wireValue[T model.Unsigned](o model.Opt[T]) T {
	switch {
	case o.Infinite:
		return ^T(0)
	case !o.Set:
		return ^T(0) - 1
	}
	return o.Number
}

// specializedThreads is a bit in a job's number of specialized cores. If the
// bit is set, the number counts threads instead of cores.
const specializedThreads = 0x8000

func coreSpec(j *JobRow) uint16 {
	if n := wireValue(j.CoreSpec); n&specializedThreads == 0 {
		return n
	}
	return 0
}

func threadSpec(j *JobRow) uint16 {
	if n := wireValue(j.CoreSpec); n&specializedThreads != 0 {
		return n &^ specializedThreads
	}
	return 0
}

// requirement returns one of the job's requirements as the protocol encodes it.
// It returns 0 if the controller sent no requirements for this job.
func requirement(j *JobRow, o model.Opt[uint16]) uint16 {
	if !j.Detailed {
		return 0
	}
	return wireValue(o)
}

// memoryNotSet is the RPC's 64-bit number for "not set". It must not be
// mistaken for an amount of memory per CPU, which also has the top bit set.
const memoryNotSet = ^uint64(0) - 1

// jobMemory returns the memory that a job requests. A job can request memory
// per unit of one or more trackable resources, such as per GPU. In this case
// jobMemory returns the first amount, because MinMemory contains only the
// partition's default.
func jobMemory(j *JobRow) uint64 {
	first, _, _ := strings.Cut(j.MemPerTRES, ",")
	n, err := strconv.ParseUint(first[strings.LastIndexAny(first, ":=")+1:], 10, 64)
	if err != nil {
		return j.MinMemory
	}
	return n
}

func memoryPerCPU(n uint64) model.Opt[uint64] {
	if n >= memoryNotSet || n&model.MemPerCPU == 0 {
		return model.Opt[uint64]{}
	}
	return model.Some(n &^ model.MemPerCPU)
}

func memoryPerNode(n uint64) model.Opt[uint64] {
	if n >= memoryNotSet || n&model.MemPerCPU != 0 {
		return model.Opt[uint64]{}
	}
	return model.Some(n)
}

// signed returns the nice value that n encodes. In the protocol, an offset
// keeps nice values positive.
func signed(n uint32) int64 {
	if n == model.NoVal32 {
		return 0
	}
	return int64(n) - model.NiceOffset
}

func jobUser(j *JobRow) string {
	if j.UserName != "" {
		return j.UserName
	}
	return userName(j.Users, j.UserID)
}

// oversubscribed reports whether a job may share its resources with other jobs.
// It returns false only for a job that was submitted as exclusive.
func oversubscribed(j *JobRow) bool { return wireValue(j.Shared) != 0 }

// ArrayTasks returns the pending tasks of the job array j. The protocol encodes
// them as a bitmap, written in hexadecimal digits.
func ArrayTasks(j *model.Job) model.Bitmap {
	digits, isBitmap := strings.CutPrefix(j.ArrayTasks, "0x")
	if !isBitmap {
		return model.Bitmap{}
	}
	b := model.Bitmap{Len: uint32(4 * len(digits)), Set: true, Bits: make([]byte, (len(digits)+1)/2)}
	for i := range len(digits) {
		n, _ := strconv.ParseUint(digits[len(digits)-1-i:len(digits)-i], 16, 8)
		b.Bits[i/2] |= byte(n) << (i % 2 * 4)
	}
	return b
}

// arrayTasks returns the list of pending tasks, such as "1-3,7%2". The number
// after the % limits how many tasks may run at the same time. The protocol has
// a separate field for this limit.
func arrayTasks(j *JobRow) string {
	tasks := ArrayTasks(j.Job)
	if !tasks.Set {
		return j.ArrayTasks
	}
	list := stepList(&tasks)
	if list == "" {
		list = rangeList(members(&tasks))
	}
	if j.ArrayMaxTasks != 0 {
		list += "%" + strconv.FormatUint(uint64(j.ArrayMaxTasks), 10)
	}
	return list
}

// stepList returns a set of numbers with equal gaps as "0-100:2", or "" if it is
// not such a set. As in squeue, only more than five numbers, which span more than
// ten, are written so.
func stepList(b *model.Bitmap) string {
	first, last, step, count := -1, -1, 0, 0
	for n := range members(b) {
		switch count++; {
		case first < 0:
			first = n
		case step == 0:
			step = n - last
		case n-last != step:
			return ""
		}
		last = n
	}
	if count <= 5 || step < 2 || last-first <= 10 {
		return ""
	}
	return fmt.Sprintf("%d-%d:%d", first, last, step)
}

// jobSizes returns the node counts that a job accepts, as a list of numbers and
// ranges such as "2-4".
func jobSizes(j *JobRow) []string {
	return commaList(rangeList(members(&j.JobSizes)))
}

// members returns an iterator over the numbers whose bits are set in b.
func members(b *model.Bitmap) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range int(b.Len) {
			if b.Has(i) && !yield(i) {
				return
			}
		}
	}
}

// rangeList writes ascending numbers as "1,4,7-10".
func rangeList(numbers func(yield func(int) bool)) string {
	var b strings.Builder
	first, last := -1, -2
	end := func() {
		if first < 0 {
			return
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(first))
		if last > first {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(last))
		}
	}
	for n := range numbers {
		if n != last+1 {
			end()
			first = n
		}
		last = n
	}
	end()
	return b.String()
}

// parseRange parses a number or a range, such as "3" or "1-3". ok is false if s
// is neither a number nor a range, or if the range is empty.
func parseRange(s string) (from, to uint64, ok bool) {
	low, high, isRange := strings.Cut(s, "-")
	if !isRange {
		high = low
	}
	from, err1 := strconv.ParseUint(low, 10, 32)
	to, err2 := strconv.ParseUint(high, 10, 32)
	return from, to, err1 == nil && err2 == nil && from <= to
}

// partitionPriority is a job's priority in one of its partitions.
type partitionPriority struct {
	Partition string
	Priority  uint32
}

var partitionPriorityType = schema.Object("part_prio", func() schema.Fields[partitionPriority] {
	return schema.Fields[partitionPriority]{
		schema.F("partition", schema.String, func(p *partitionPriority) *string { return &p.Partition }, "Name of the partition"),
		schema.F("priority", schema.Int32, func(p *partitionPriority) *uint32 { return &p.Priority }, "Priority of the job in this partition", schema.Bare),
	}
})

func partitionPriorities(j *JobRow) []partitionPriority {
	names := commaList(j.PriorityArrayNames)
	if len(names) == 0 {
		names = commaList(j.Partition)
	}
	var list []partitionPriority
	for i, priority := range j.PriorityArray {
		if i < len(names) {
			list = append(list, partitionPriority{names[i], priority})
		}
	}
	return list
}

// JobsAnswer is an answer with jobs. LastBackfill and LastUpdate are valid only
// after all jobs have been read from the stream.
type JobsAnswer struct {
	Jobs         schema.Stream[JobRow]
	LastBackfill model.Time
	LastUpdate   model.Time
	Envelope
}

// Jobs declares the fields of a JobsAnswer.
var Jobs = enveloped("openapi_job_info_resp", func(a *JobsAnswer) *Envelope { return &a.Envelope },
	schema.F("jobs", schema.Named("job_info_msg", schema.StreamOf(Job.Type)), func(a *JobsAnswer) *schema.Stream[JobRow] { return &a.Jobs }, "The jobs", schema.Required(0)),
	schema.F("last_backfill", moment, func(a *JobsAnswer) *model.Time { return &a.LastBackfill }, "Time when backfill scheduling last ran", schema.Unit(UnixTime), schema.Required(0)),
	schema.F("last_update", moment, func(a *JobsAnswer) *model.Time { return &a.LastUpdate }, "Time of the last change of any object in the list", schema.Unit(UnixTime), schema.Required(0)),
)

// JobListParams are the parameters of GetJobs.
type JobListParams struct {
	model.Query
	JobFilter
	Explain bool
}

var jobListParams = schema.Object("", func() schema.Fields[JobListParams] {
	list := append(listFields(func(p *JobListParams) *model.Query { return &p.Query }), explainParam(func(p *JobListParams) *bool { return &p.Explain }))
	return append(list,
		jobFilterFields(func(p *JobListParams) *JobFilter { return &p.JobFilter }, condition(jobRanges), schema.Extension)...)
})

// GetJobs lists the jobs.
var GetJobs = declare(scope.ComputeRead, jobListParams, Endpoint{
	Method: http.MethodGet, Path: "jobs/", ID: "get_jobs", Paged: true, Collection: "jobs",
	Doc: "List the jobs", Answer: Jobs,
	Description: "Returns all jobs that the controller still holds and the user may see: pending jobs, running jobs, and jobs that ended recently. Older jobs are available only from accounting. Filters select some of the jobs; the controller is asked for less if the filter is one user or one job.",
	AnswerDoc:   "The jobs",
})

// JobURL returns the path of a job.
func JobURL(v schema.View, id uint32) string {
	return strings.Replace(GetJob.Endpoint.URL(v), "{job_id}", strconv.FormatUint(uint64(id), 10), 1)
}

// explainParam returns the parameter with which a client asks why jobs wait.
func explainParam[P any](at func(*P) *bool) schema.Field[P] {
	return schema.F("explain", boolText, at, "Add to each job that waits or has failed an explanation of the reason, for people who do not know Slurm, with the numbers that the client may see; in a stream of events only with those in the record of the job", schema.Extension)
}

type JobParams struct {
	Job model.JobSelection
	model.Query
	Explain bool
}

var jobParams = schema.Object("", func() schema.Fields[JobParams] {
	return schema.Fields[JobParams]{
		schema.F("job_id", oneJob, func(p *JobParams) *model.JobSelection { return &p.Job }, "Job id; \"12_3\" for a task, \"12+1\" for a component", schema.Required(0)),
		updateTime(func(p *JobParams) *model.Query { return &p.Query }),
		flags(func(p *JobParams) *model.Query { return &p.Query }),
		explainParam(func(p *JobParams) *bool { return &p.Explain }),
	}
})

var GetJob = declare(scope.ComputeRead, jobParams, Endpoint{
	Method: http.MethodGet, Path: "job/{job_id}", ID: "get_job", Ending: true,
	Doc: "Show one job", Answer: Jobs,
	Description: "Returns the job with this number, or the tasks of the job array with this number. The pending tasks of an array are shown together as one job. Returns 404 if the number is unknown.",
	AnswerDoc:   "The job, in a list",
})
