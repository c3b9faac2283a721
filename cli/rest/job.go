package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

// Job contains the fields of a job that are shown to people. They come from the
// controller or from accounting. Times are in seconds since 1970.
type Job struct {
	ID          uint32   `json:"job_id"`
	ArrayJob    Number   `json:"array_job_id"`
	ArrayTask   Number   `json:"array_task_id"`
	ArrayTasks  string   `json:"array_task_string"`
	HetJob      Number   `json:"het_job_id"`
	HetOffset   Number   `json:"het_job_offset"`
	Name        string   `json:"name"`
	User        string   `json:"user_name"`
	Account     string   `json:"account"`
	Partition   string   `json:"partition"`
	QOS         string   `json:"qos"`
	State       Words    `json:"job_state"`
	Reason      string   `json:"state_reason"`
	Description string   `json:"state_description"` // details of the reason
	Submitted   Number   `json:"submit_time"`
	Started     Number   `json:"start_time"`
	Ended       Number   `json:"end_time"`
	Suspended   Number   `json:"suspend_time"` // when the job was last suspended or resumed
	RanBefore   Number   `json:"pre_sus_time"` // run time until then, in seconds
	RunTime     Number   `json:"-"`            // in seconds, in accounting
	TimeLimit   Number   `json:"time_limit"`   // in minutes
	Priority    Number   `json:"priority"`
	CPUs        Number   `json:"cpus"`
	NodeCount   Number   `json:"node_count"`
	Tasks       Number   `json:"tasks"`
	MemoryNode  Number   `json:"memory_per_node"` // in MiB
	MemoryCPU   Number   `json:"memory_per_cpu"`  // in MiB
	Nodes       string   `json:"nodes"`
	Dependency  string   `json:"dependency"`
	Comment     string   `json:"comment"`
	Resources   string   `json:"tres_req_str"`
	Allocated   string   `json:"tres_alloc_str"`
	Directory   string   `json:"current_working_directory"`
	Command     string   `json:"command"`
	Output      string   `json:"standard_output"`
	Error       string   `json:"standard_error"`
	OutputPath  string   `json:"stdout_expanded"` // from v0.0.43 on
	ErrorPath   string   `json:"stderr_expanded"`
	Exit        ExitCode `json:"exit_code"`

	KilledBy string `json:"-"` // user who has cancelled the job, in accounting

	Explanation struct{ Why, Change string } `json:"explanation"` // only with Explained, and from a gateway
}

// Explained returns the List that asks for explanations of why jobs wait.
func Explained() *List { return &List{Filters: url.Values{"explain": {"true"}}} }

// ExitCode is the result of a job's script.
type ExitCode struct {
	Code   Number `json:"return_code"`
	Signal struct {
		ID   Number `json:"id"`
		Name string `json:"name"`
	} `json:"signal"`
}

// BaseState returns the state without flags, such as PENDING.
func (j *Job) BaseState() string {
	if len(j.State) == 0 {
		return "UNKNOWN"
	}
	return j.State[0]
}

// Active reports whether j is waiting, running or completing.
func (j *Job) Active() bool {
	switch j.BaseState() {
	case "PENDING", "RUNNING", "SUSPENDED":
		return true
	}
	return slices.Contains(j.State, "COMPLETING") || slices.Contains(j.State, "REQUEUED") && j.BaseState() != "REQUEUED"
}

// HasStarted reports whether j runs, or has run and ended.
func (j *Job) HasStarted() bool {
	switch j.BaseState() {
	case "PENDING", "UNKNOWN":
		return false
	}
	return !slices.Contains(j.State, "CONFIGURING")
}

// Label returns the id of the job as people write it: 12, 12_3 for a task of an
// array, 12_[4-9] for pending tasks, or 12+1 for a component of a heterogeneous job.
func (j *Job) Label() string {
	array := j.ArrayJob.Int()
	switch {
	case array != 0 && j.ArrayTask.Set:
		return fmt.Sprintf("%d_%d", array, j.ArrayTask.Int())
	case array != 0 && j.ArrayTasks != "":
		return fmt.Sprintf("%d_[%s]", array, j.ArrayTasks)
	case j.HetJob.Int() != 0:
		return fmt.Sprintf("%d+%d", j.HetJob.Int(), j.HetOffset.Int())
	}
	return strconv.FormatUint(uint64(j.ID), 10)
}

// Array returns the id of the array to which j belongs, or "" if j does not
// belong to an array.
func (j *Job) Array() string {
	if j.ArrayJob.Int() == 0 {
		return ""
	}
	return strconv.FormatInt(j.ArrayJob.Int(), 10)
}

// Whole returns the id of the array or heterogeneous job to which j belongs, or "".
func (j *Job) Whole() string {
	if j.HetJob.Int() != 0 {
		return strconv.FormatInt(j.HetJob.Int(), 10)
	}
	return j.Array()
}

// matches reports whether id selects the job j. This check is necessary because
// a server may answer a request for one task of an array with all tasks.
func (j *Job) matches(id string) bool {
	if !strings.ContainsAny(id, partMarks) || j.Label() == id {
		return true
	}
	array, task, ok := strings.Cut(id, "_")
	return ok && j.Array() == array && j.hasPendingTask(task)
}

// partMarks precede the number of a task or component in the id of a job.
const partMarks = "_+"

// Selects reports whether id is the id of the job j, of the array or heterogeneous job
// to which it belongs, or of one of the pending tasks that j stands for.
func (j *Job) Selects(id string) bool {
	if strings.ContainsAny(id, partMarks) {
		return j.matches(id)
	}
	return id == strconv.FormatUint(uint64(j.ID), 10) || id == j.Whole()
}

// PendingTasks returns the ids of the pending tasks that j stands for, such as
// 12_4 and 12_5. If j does not stand for several tasks, PendingTasks returns no
// ids. It returns false if the server did not send the complete list: slurmrestd
// cuts a long list off.
func (j *Job) PendingTasks() (iter.Seq[string], bool) {
	list, complete := j.pendingList()
	return func(yield func(string) bool) {
		for task := range model.Hosts(list) {
			if !yield(j.Array() + "_" + task) {
				return
			}
		}
	}, complete
}

// PendingCount returns the number of tasks that wait, if j is pending: 1, or the
// number of tasks of an array that j stands for. slurmrestd cuts a long list of
// tasks off; then it is the number of those in the list.
func (j *Job) PendingCount() int {
	list, _, _ := strings.Cut(j.ArrayTasks, "%")
	if j.ArrayJob.Int() == 0 || j.ArrayTask.Set || list == "" {
		return 1
	}
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		part, step, _ := strings.Cut(part, ":")
		first, last, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(first)
		if err != nil {
			continue // the rest of the list is cut off
		}
		b, err := strconv.Atoi(last)
		if !isRange || err != nil {
			b = a
		}
		width, err := strconv.Atoi(step)
		if err != nil || width < 1 {
			width = 1
		}
		n += max(0, b-a)/width + 1
	}
	return max(1, n)
}

func (j *Job) hasPendingTask(task string) bool {
	list, complete := j.pendingList()
	return complete && list != "" && model.HostlistHas(list, task)
}

// pendingList returns the numbers of the pending tasks that j stands for, as a
// host list expression such as "[4-5,9]".
func (j *Job) pendingList() (list string, complete bool) {
	list, _, _ = strings.Cut(j.ArrayTasks, "%") // the limit on running tasks follows
	switch {
	case j.ArrayJob.Int() == 0 || j.ArrayTask.Set || list == "":
		return "", true
	case strings.Trim(list, "0123456789,-") != "":
		return "", false
	}
	return "[" + list + "]", true
}

// Elapsed returns the run time of j as of the time now, without the time for which j was
// suspended.
func (j *Job) Elapsed(now time.Time) time.Duration {
	started, ended, before := j.Started.Int(), j.Ended.Int(), int64(0)
	state := j.BaseState()
	switch {
	case j.RunTime.Set:
		return time.Duration(j.RunTime.Int()) * time.Second
	case started == 0 || state == "PENDING" || state == "UNKNOWN":
		return 0
	case ended == 0 || state == "RUNNING" || state == "SUSPENDED":
		ended = now.Unix()
	}
	if suspended := j.Suspended.Int(); suspended != 0 {
		if started, before = suspended, j.RanBefore.Int(); state == "SUSPENDED" {
			ended = started
		}
	}
	return max(0, time.Duration(ended-started+before)*time.Second)
}

// ElapsedFields are the fields that Elapsed needs.
const ElapsedFields = "job_state,start_time,end_time,suspend_time,pre_sus_time"

// GPUs returns the number of GPUs that j has or, while it waits, has requested.
func (j *Job) GPUs() int64 {
	for item := range strings.SplitSeq(cmp.Or(j.Allocated, j.Resources), ",") {
		if count, ok := strings.CutPrefix(item, "gres/gpu="); ok {
			n, _ := strconv.ParseInt(count, 10, 64)
			return n
		}
	}
	return 0
}

// outputSignal is the signal that Slurm reports, as in 0:53, if it could not open
// a job's files: its error number 4021 in a wait status. Lists have no exit
// status, but a reason that begins with raisedSignal.
const (
	outputSignal = 53
	raisedSignal = "RaisedSignal:53("
)

// FilesFailed reports whether j has failed because its file for input, output or
// errors could not be opened.
func (j *Job) FilesFailed() bool {
	return j.BaseState() == "FAILED" &&
		(j.Exit.Signal.ID.Int() == outputSignal && j.Exit.Code.Int() == 0 || strings.HasPrefix(cmp.Or(j.Description, j.Reason), raisedSignal))
}

// ExitStatus returns the exit status for a job that has ended. As in a shell,
// this is the exit status of the job's script, or 128 plus the number of the
// signal that ended the script. After any other failure it is 1.
func (j *Job) ExitStatus() int {
	if signal := j.Exit.Signal.ID.Int(); signal > 0 {
		return 128 + int(signal)&0x7f
	}
	if code := j.Exit.Code.Int() & 0xff; code != 0 {
		return int(code)
	}
	if j.BaseState() != "COMPLETED" || j.Exit.Code.Int() != 0 {
		return 1
	}
	return 0
}

var jobID = regexp.MustCompile(`^[0-9]{1,10}([_+][0-9]{1,10})?$`)

// CheckJobID returns an error if text is not a valid job id. A valid id is a
// number such as 12, a task of an array such as 12_3, or a component of a
// heterogeneous job such as 12+1.
func CheckJobID(text string) error {
	if !jobID.MatchString(text) || strings.Trim(text, "0"+partMarks) == "" {
		return errs.New(errs.Malformed, "%q is not a job id", shorten(text)).
			WithHint("a job id is a number, NUMBER_TASK for a task of an array, or NUMBER+COMPONENT; several ids are separated by blanks")
	}
	return nil
}

// jobPath returns the path of the job with this id. slurmrestd does not accept a plus
// sign in a path.
func jobPath(id string) string { return "job/" + strings.ReplaceAll(url.PathEscape(id), "+", "%2B") }

// Jobs calls each(j) for every job of the controller that the server sends for
// l.
func (c *Client) Jobs(ctx context.Context, l *List, each func(*Job) error) (Meta, error) {
	return c.requestList(ctx, c.path(c.spelling, "jobs/"), l, "jobs", decodeEach(each))
}

// RawJobs does the same as Jobs, and also passes on the JSON text of each job.
func (c *Client) RawJobs(ctx context.Context, l *List, each func(*Job, json.RawMessage) error) (Meta, error) {
	return c.requestList(ctx, c.path(c.spelling, "jobs/"), l, "jobs", decodeRaw(each))
}

// RawJob calls each(j, text) for the job with this id, as l asks for it. If the id is that of an
// array, RawJob calls each for every task. The text argument is the job in
// JSON. If the controller has forgotten the job, RawJob requests the job from
// accounting.
func (c *Client) RawJob(ctx context.Context, id string, l *List, each func(*Job, json.RawMessage) error) error {
	_, err := c.requestJob(ctx, id, l, each)
	return err
}

func (c *Client) requestJob(ctx context.Context, id string, l *List, each func(*Job, json.RawMessage) error) (Meta, error) {
	found := false
	m, err := c.requestList(ctx, c.path(c.spelling, jobPath(id)), l, "jobs", decodeRaw(func(j *Job, text json.RawMessage) error {
		if !j.matches(id) {
			return nil
		}
		found = true
		return each(j, text)
	}))
	if err == nil && (found || m.Unchanged) || err != nil && errs.KindOf(err) != errs.NotFound {
		return m, err
	}
	return Meta{}, c.accountingJob(ctx, id, each)
}

// Job returns the job with this id. If the id is that of an array, it returns
// all tasks.
func (c *Client) Job(ctx context.Context, id string) (jobs []Job, err error) {
	jobs, _, err = c.PollJob(ctx, id, nil)
	return jobs, err
}

// PollJob does the same as Job. It requests the fields in l, and returns no jobs
// if nothing has changed since the last answer for l.
func (c *Client) PollJob(ctx context.Context, id string, l *List) (jobs []Job, m Meta, err error) {
	m, err = c.requestJob(ctx, id, l, func(j *Job, _ json.RawMessage) error {
		jobs = append(jobs, *j)
		return nil
	})
	return jobs, m, err
}

// accountingJob requests the job with this id from accounting. If the site has
// no accounting, the server answers with an error, and accountingJob reports
// that the job is unknown.
func (c *Client) accountingJob(ctx context.Context, id string, each func(*Job, json.RawMessage) error) error {
	unknown := errs.New(errs.NotFound, "job %s is unknown", id).
		WithHint("schedctl jobs --all lists the jobs that the controller knows")
	plugin := c.spelling + "db"
	resp, err := c.do(ctx, http.MethodGet, c.path(plugin, jobPath(id)), nil, nil, nil)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return unknown // servers report the lack of accounting in different ways
	}
	defer resp.Body.Close()
	if !isJSON(resp) {
		return unknown
	}
	found := false
	l, err := c.decodeList(ctx, resp, "jobs", func(d *json.Decoder) error {
		var text json.RawMessage
		if err := d.Decode(&text); err != nil {
			return err
		}
		j, err := decodeAccountingJob(text)
		if err != nil || !j.matches(id) {
			return err
		}
		found = true
		return each(j, text)
	})
	switch {
	case err != nil:
		return err
	case !found:
		return unknown
	case len(l.problems) > 0:
		return problemsError(resp.StatusCode, l.problems)
	}
	return nil
}

// AccountingJobs calls each(j, text) for every job that accounting sends for l.
// The text argument is the job in JSON.
func (c *Client) AccountingJobs(ctx context.Context, l *List, each func(*Job, json.RawMessage) error) error {
	_, err := c.requestList(ctx, c.path(c.spelling+"db", "jobs/"), l, "jobs", func(d *json.Decoder) error {
		var text json.RawMessage
		if err := d.Decode(&text); err != nil {
			return err
		}
		j, err := decodeAccountingJob(text)
		if err != nil {
			return err
		}
		return each(j, text)
	})
	if err != nil && errs.KindOf(err) == errs.NotFound {
		return errs.New(errs.Unsupported, "%s has no accounting records", c.addr)
	}
	return err
}

// AccountingFields are the fields of an accounting record that make up a Job,
// except those that lists do not show.
var AccountingFields = []string{"job_id", "array.job_id", "array.task_id", "het.job_id", "het.job_offset", "name", "user", "account", "partition", "qos", "state.current", "state.reason",
	"time.submission", "time.start", "time.end", "time.elapsed", "time.limit", "tres.allocated", "required.CPUs", "required.memory_per_cpu", "required.memory_per_node",
	"allocation_nodes", "priority", "nodes", "exit_code", "kill_request_user"}

// An accountingJob is a job in accounting. It has some fields under the names of the
// controller, which are those of Job, and others under names of its own.
type accountingJob struct {
	Job
	Comment struct{} `json:"comment"` // in accounting it is an object
	Array   struct {
		Job  uint32 `json:"job_id"`
		Task Number `json:"task_id"`
	} `json:"array"`
	Het struct {
		Job    uint32 `json:"job_id"`
		Offset Number `json:"job_offset"`
	} `json:"het"`
	User  string `json:"user"`
	State struct {
		Current Words  `json:"current"`
		Reason  string `json:"reason"`
	} `json:"state"`
	Time struct {
		Submission Number `json:"submission"`
		Start      Number `json:"start"`
		End        Number `json:"end"`
		Elapsed    Number `json:"elapsed"`
		Limit      Number `json:"limit"`
	} `json:"time"`
	TRES struct {
		Allocated []struct {
			Type  string `json:"type"`
			Name  string `json:"name"`
			Count int64  `json:"count"`
		} `json:"allocated"`
	} `json:"tres"`
	Required struct {
		CPUs       Number `json:"CPUs"`
		MemoryCPU  Number `json:"memory_per_cpu"`
		MemoryNode Number `json:"memory_per_node"`
	} `json:"required"`
	NodeCount Number `json:"allocation_nodes"`
	Directory string `json:"working_directory"`
	Output    string `json:"stdout"`
	Error     string `json:"stderr"`
	KilledBy  string `json:"kill_request_user"`
}

// decodeAccountingJob decodes a job of accounting.
func decodeAccountingJob(text json.RawMessage) (*Job, error) {
	var r accountingJob
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	j := &r.Job
	j.ArrayJob, j.ArrayTask = Number{Set: r.Array.Job != 0, Value: float64(r.Array.Job)}, r.Array.Task
	if r.Het.Job != 0 && r.Het.Offset.Set { // slurmdbd has one record, without an offset, of a job that has not started
		j.HetJob, j.HetOffset = Number{Set: true, Value: float64(r.Het.Job)}, r.Het.Offset
	}
	j.User, j.State, j.Reason, j.KilledBy = r.User, r.State.Current, r.State.Reason, r.KilledBy
	if r.Time.End.Int() != 0 && slices.Contains(j.State, "REQUEUED") {
		j.State = Words{"REQUEUED"} // a run that ended when the job was requeued; Slurm's base state is that of the queue
	}
	j.Submitted, j.Started, j.Ended, j.RunTime, j.TimeLimit = r.Time.Submission, r.Time.Start, r.Time.End, r.Time.Elapsed, r.Time.Limit
	j.CPUs, j.NodeCount, j.MemoryNode, j.MemoryCPU = r.Required.CPUs, r.NodeCount, r.Required.MemoryNode, r.Required.MemoryCPU
	if j.Nodes == "None assigned" {
		j.Nodes = ""
	}
	for _, t := range r.TRES.Allocated {
		switch {
		case t.Type == "cpu":
			j.CPUs = Number{Set: true, Value: float64(t.Count)}
		case t.Type == "gres" && t.Name == "gpu":
			j.Allocated = fmt.Sprintf("gres/gpu=%d", t.Count)
		}
	}
	j.Directory, j.Output, j.Error = r.Directory, r.Output, r.Error
	return j, nil
}

// decodeEach returns a function for requestList. The returned function decodes
// an element and passes the result to the function each.
func decodeEach[T any](each func(*T) error) func(*json.Decoder) error {
	return func(d *json.Decoder) error {
		v := new(T)
		if err := d.Decode(v); err != nil {
			return err
		}
		return each(v)
	}
}

// decodeRaw returns a function for requestList. The returned function decodes
// an element, and passes the result and its JSON text to the function each. The
// text is valid only until each returns.
func decodeRaw[T any](each func(*T, json.RawMessage) error) func(*json.Decoder) error {
	var text json.RawMessage
	return func(d *json.Decoder) error {
		if err := d.Decode(&text); err != nil {
			return err
		}
		v := new(T)
		if err := json.Unmarshal(text, v); err != nil {
			return err
		}
		return each(v, text)
	}
}
