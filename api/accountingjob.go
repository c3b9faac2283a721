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

// AccountingJobRow is a job in the accounting records, with a Records value,
// which translates the job's ids to names.
type AccountingJobRow struct {
	*model.AccountingJob
	*Records
	Now model.Time // the current time, for the waiting time of pending jobs
}

// scheduleFlags are words that describe how a job was scheduled.
var scheduleFlags = schema.Words("slurmdb_job_flags",
	schema.Part("NONE", ^uint32(0), 0),
	schema.Part("CLEAR_SCHEDULING", ^uint32(0), 15),
	schema.Bit("NOT_SET", scheduledUnset),
	schema.Bit("STARTED_ON_SUBMIT", scheduledOnSubmit),
	schema.Bit("STARTED_ON_SCHEDULE", scheduledByMain),
	schema.Bit("STARTED_ON_BACKFILL", scheduledByBackfill),
	schema.Bit("START_RECEIVED", jobStarted),
	schema.Bit("JOB_ALTERED", jobAltered, schema.Since(V44)),
)

// Bits of AccountingJob.Flags.
const (
	scheduledUnset uint32 = 1 << iota
	scheduledOnSubmit
	scheduledByMain
	scheduledByBackfill
	jobStarted
	jobAltered
)

// cpuTime returns a field for a CPU time.
func cpuTime[O, S, U any](name, doc string, seconds func() schema.Type[S], micro func() schema.Type[U], sec func(*O) *S, usec func(*O) *U) schema.Field[O] {
	return schema.Group(name, doc, schema.Fields[O]{
		schema.F("seconds", seconds, sec, "CPU time without the fraction of a second", schema.Unit("s")),
		schema.F("microseconds", micro, usec, "Fraction of a second", schema.Unit("µs")),
	})
}

// AccountingJob declares the fields of a job in the accounting records.
var AccountingJob = schema.Object("job", func() schema.Fields[AccountingJobRow] {
	return schema.Fields[AccountingJobRow]{
		schema.F("account", schema.String, func(j *AccountingJobRow) *string { return &j.Account }, "Account"),
		schema.Group("comment", "Comments", schema.Fields[AccountingJobRow]{
			schema.F("administrator", text, func(j *AccountingJobRow) *model.Text { return &j.AdminComment }, "Comment of an administrator"),
			schema.F("job", text, func(j *AccountingJobRow) *model.Text { return &j.DerivedExitText }, "Comment of the user"),
			schema.F("system", text, func(j *AccountingJobRow) *model.Text { return &j.SystemComment }, "Comment of the scheduler"),
		}),
		schema.F("allocation_nodes", schema.Int32, func(j *AccountingJobRow) *uint32 { return &j.AllocNodes }, "Number of nodes that were allocated", schema.Count),
		schema.Group("array", "Job array to which the job belongs", schema.Fields[AccountingJobRow]{
			schema.F("job_id", schema.Int32, func(j *AccountingJobRow) *uint32 { return &j.ArrayJobID }, "Id of the array; 0 if the job belongs to none", schema.Bare),
			schema.Group("limits", "Limits of the array", schema.Fields[AccountingJobRow]{
				schema.Group("max", "Maximum values", schema.Fields[AccountingJobRow]{
					schema.Group("running", "Running tasks", schema.Fields[AccountingJobRow]{
						schema.F("tasks", schema.Int32, func(j *AccountingJobRow) *uint32 { return &j.ArrayMaxTasks }, "Maximum number of concurrently running tasks; 0 for no limit", schema.Count),
					}),
				}),
			}),
			schema.F("task_id", number, func(j *AccountingJobRow) *model.Opt[uint32] { return &j.ArrayTaskID }, "Index of the task", schema.Bare),
			schema.F("task", schema.String, func(j *AccountingJobRow) *string { return &j.ArrayTasks }, "Tasks that have not started"),
		}),
		schema.Show("association", assocShort.Type, jobAssociation, "Association to which the job is charged"),
		schema.F("block", schema.String, func(j *AccountingJobRow) *string { return &j.BlockID }, "Block id on Blue Gene machines, which Slurm no longer supports"),
		schema.F("cluster", schema.String, func(j *AccountingJobRow) *string { return &j.Cluster }, "Cluster"),
		schema.F("constraints", schema.String, func(j *AccountingJobRow) *string { return &j.Constraints }, "Required features of the nodes"),
		schema.F("container", schema.String, func(j *AccountingJobRow) *string { return &j.Container }, "OCI container bundle"),
		schema.Show("derived_exit_code", exitCodeType.Type, func(j *AccountingJobRow) exitCode { return decodeExit(j.DerivedExitCode) }, "Highest exit code of the job's steps"),
		schema.F("exclusive", schema.String, func(j *AccountingJobRow) *string { return &j.Exclusive }, "Exclusive resources that the job requested", schema.Since(V45)),
		schema.Group("time", "Times", schema.Fields[AccountingJobRow]{
			schema.F("elapsed", schema.Int32, func(j *AccountingJobRow) *uint32 { return &j.Elapsed }, "Run time", schema.Unit("s")),
			schema.F("eligible", seconds, func(j *AccountingJobRow) *model.Time { return &j.EligibleTime }, "Time at which the job became eligible to run", schema.Unit(UnixTime)),
			schema.F("end", seconds, func(j *AccountingJobRow) *model.Time { return &j.EndTime }, "End time", schema.Unit(UnixTime)),
			schema.Show("planned", number, plannedWait, "Time between eligibility and start", schema.Unit("s"), schema.Since(V41)),
			schema.F("start", seconds, func(j *AccountingJobRow) *model.Time { return &j.StartTime }, "Start time", schema.Unit(UnixTime)),
			schema.F("submission", seconds, func(j *AccountingJobRow) *model.Time { return &j.SubmitTime }, "Time of submission", schema.Unit(UnixTime)),
			schema.F("suspended", schema.Int32, func(j *AccountingJobRow) *uint32 { return &j.Suspended }, "Time during which the job was suspended", schema.Unit("s")),
			cpuTime("system", "System CPU time", schema.Int64[uint64], schema.Int64[uint64], func(j *AccountingJobRow) *uint64 { return &j.SystemCPUSec }, func(j *AccountingJobRow) *uint64 { return &j.SystemCPUUsec }),
			schema.F("limit", number, func(j *AccountingJobRow) *model.Opt[uint32] { return &j.TimeLimit }, "Time limit of the job", schema.Unit("min")),
			cpuTime("total", "CPU time", schema.Int64[uint64], schema.Int64[uint64], func(j *AccountingJobRow) *uint64 { return &j.TotalCPUSec }, func(j *AccountingJobRow) *uint64 { return &j.TotalCPUUsec }),
			cpuTime("user", "User CPU time", schema.Int64[uint64], schema.Int64[uint64], func(j *AccountingJobRow) *uint64 { return &j.UserCPUSec }, func(j *AccountingJobRow) *uint64 { return &j.UserCPUUsec }),
		}),
		schema.Show("exit_code", exitCodeType.Type, func(j *AccountingJobRow) exitCode { return decodeExit(j.ExitCode) }, "Result of the job"),
		schema.F("extra", text, func(j *AccountingJobRow) *model.Text { return &j.Extra }, "Text for node selection, with a meaning defined by the site"),
		schema.F("failed_node", schema.String, func(j *AccountingJobRow) *string { return &j.FailedNode }, "Node whose failure ended the job"),
		schema.F("flags", scheduleFlags.Type, func(j *AccountingJobRow) *uint32 { return &j.Flags }, "Flags that show how the job was scheduled"),
		schema.Show("group", schema.String, func(j *AccountingJobRow) string { return groupName(j.Users, j.GroupID) }, "Group of the job"),
		schema.Group("het", "Heterogeneous job to which the job belongs", schema.Fields[AccountingJobRow]{
			schema.F("job_id", schema.Int32, func(j *AccountingJobRow) *uint32 { return &j.HetJobID }, "Id of the heterogeneous job; 0 if the job belongs to none", schema.Bare),
			schema.F("job_offset", number, func(j *AccountingJobRow) *model.Opt[uint32] { return &j.HetJobOffset }, "Index of the component", schema.Bare),
		}),
		schema.F("job_id", schema.Int32, func(j *AccountingJobRow) *uint32 { return &j.JobID }, "Number of the job", schema.Bare),
		schema.F("name", schema.String, func(j *AccountingJobRow) *string { return &j.Name }, "Name of the job"),
		schema.F("licenses", schema.String, func(j *AccountingJobRow) *string { return &j.Licenses }, "Licenses that the job requested"),
		schema.Group("mcs", "Multi-category security", schema.Fields[AccountingJobRow]{
			schema.F("label", schema.String, func(j *AccountingJobRow) *string { return &j.MCSLabel }, "Security label of the job"),
		}),
		schema.F("nodes", schema.String, func(j *AccountingJobRow) *string { return &j.Nodes }, "Nodes of the job, as a host list"),
		schema.Show("original_sluid", sluid, func(j *AccountingJobRow) uint64 { return j.SLUID }, "Unique id (SLUID) of the job's first run", schema.Since(V45)),
		schema.F("oversubscribe", schema.String, func(j *AccountingJobRow) *string { return &j.Oversubscribe }, "How the job was requested to share its nodes", schema.Since(V45)),
		schema.F("partition", schema.String, func(j *AccountingJobRow) *string { return &j.Partition }, "Partition"),
		schema.Show("hold", schema.Boolean, func(j *AccountingJobRow) bool { return j.Priority.Set && j.Priority.Number == 0 }, "Whether the job is held"),
		schema.F("priority", number, func(j *AccountingJobRow) *model.Opt[uint32] { return &j.Priority }, "Priority; 0 if the job is held", schema.Bare),
		schema.Show("qos", schema.String, func(j *AccountingJobRow) string { return j.qos(j.QOSID) }, "Quality of service"),
		schema.F("qosreq", schema.String, func(j *AccountingJobRow) *string { return &j.QOSReq }, "Requested quality of service", schema.Since(V42)),
		schema.Group("required", "Resources that the job requested", schema.Fields[AccountingJobRow]{
			schema.F("CPUs", schema.Int32, func(j *AccountingJobRow) *uint32 { return &j.ReqCPUs }, "Number of processors", schema.Count),
			schema.Show("memory_per_cpu", number, func(j *AccountingJobRow) model.Opt[uint64] { return memory(j.ReqMem, true) }, "Memory for each processor", schema.Unit("MiB")),
			schema.Show("memory_per_node", number, func(j *AccountingJobRow) model.Opt[uint64] { return memory(j.ReqMem, false) }, "Memory on each node", schema.Unit("MiB")),
		}),
		schema.Show("kill_request_user", schema.String, func(j *AccountingJobRow) string { return userName(j.Users, j.ReqUserID) }, "User who cancelled the job"),
		schema.F("restart_cnt", schema.Int32, func(j *AccountingJobRow) *uint16 { return &j.RestartCnt }, "Number of restarts", schema.Count, schema.Since(V42)),
		schema.Group("reservation", "Reservation", schema.Fields[AccountingJobRow]{
			schema.F("id", schema.Int32, func(j *AccountingJobRow) *uint32 { return &j.ReservationID }, "Number of the reservation", schema.Bare),
			schema.F("name", schema.String, func(j *AccountingJobRow) *string { return &j.Reservation }, "Name of the reservation"),
			schema.F("requested", schema.String, func(j *AccountingJobRow) *string { return &j.ReservationReq }, "Requested reservations", schema.Since(V43)),
		}),
		schema.F("script", schema.String, func(j *AccountingJobRow) *string { return &j.Script }, "Script, if requested"),
		schema.F("segment_size", schema.Int32, func(j *AccountingJobRow) *uint16 { return &j.SegmentSize }, "Number of nodes in each segment of a block topology", schema.Count, schema.Since(V43)),
		schema.Show("sluid", sluid, func(j *AccountingJobRow) uint64 { return j.DBIndex }, "Id of this run of the job, unique among all clusters (SLUID)", schema.Since(V45)),
		schema.Show("stdin_expanded", schema.String, func(j *AccountingJobRow) string { return accountingJobPath(j, j.StdIn) }, "Standard input path", schema.Since(V41)),
		schema.Show("stdout_expanded", schema.String, func(j *AccountingJobRow) string { return accountingJobPath(j, j.StdOut) }, "Standard output path", schema.Since(V41)),
		schema.Show("stderr_expanded", schema.String, func(j *AccountingJobRow) string { return accountingJobPath(j, j.StdErr) }, "Standard error path", schema.Since(V41)),
		schema.F("stdout", schema.String, func(j *AccountingJobRow) *string { return &j.StdOut }, "Pattern of the standard output path", schema.Since(V41)),
		schema.F("stderr", schema.String, func(j *AccountingJobRow) *string { return &j.StdErr }, "Pattern of the standard error path", schema.Since(V41)),
		schema.F("stdin", schema.String, func(j *AccountingJobRow) *string { return &j.StdIn }, "Pattern of the standard input path", schema.Since(V41)),
		schema.Group("state", "State", schema.Fields[AccountingJobRow]{
			schema.F("current", jobStates.Type, func(j *AccountingJobRow) *model.JobState { return &j.State }, "Base state, followed by flags"),
			schema.Show("reason", schema.String, func(j *AccountingJobRow) string { return reason.Name(j.StateReason) }, "Why the job was last pending, or failed"),
		}),
		schema.Show("steps", schema.Named("step_list", schema.StreamOf(AccountingStep.Type)), accountingSteps, "Steps of the job"),
		schema.F("submit_line", schema.String, func(j *AccountingJobRow) *string { return &j.SubmitLine }, "Command line that submitted the job"),
		schema.Group("tres", "Trackable resources", schema.Fields[AccountingJobRow]{
			schema.Show("allocated", amounts, func(j *AccountingJobRow) []model.TRES { return j.Amounts(j.TRESAlloc) }, "Allocated resources"),
			schema.Show("requested", amounts, func(j *AccountingJobRow) []model.TRES { return j.Amounts(j.TRESReq) }, "Resources that the job requested"),
		}),
		schema.Show("used_gres", schema.String, func(*AccountingJobRow) string { return "" }, "No longer used: see tres"),
		schema.Show("user", schema.String, accountingUser, "User of the job"),
		schema.Show("wckey", wckeyTag.Type, func(j *AccountingJobRow) string { return j.WCKey.String() }, "Workload key"),
		schema.F("working_directory", schema.String, func(j *AccountingJobRow) *string { return &j.WorkDir }, "Working directory of the job"),
	}
})

// wckeyTag declares the fields of a workload key. The daemon sends the key as
// text, which begins with "*" if the job got the user's default key because the
// user requested none.
var wckeyTag = schema.Object("wckey_tag_struct", func() schema.Fields[string] {
	return schema.Fields[string]{
		schema.Show("wckey", schema.String, func(s *string) string { return strings.TrimPrefix(*s, "*") }, "Name of the key", schema.Required(0)),
		schema.Show("flags", schema.Words("wckey_tag_flags", schema.Bit("ASSIGNED_DEFAULT", uint8(1))).Type, func(s *string) (bits uint8) {
			if strings.HasPrefix(*s, "*") {
				bits = 1
			}
			return bits
		}, "Origin of the key: ASSIGNED_DEFAULT if it is the default of the user", schema.Required(0)),
	}
})

// jobAssociation returns the association of a job. It leaves Partition empty,
// because the job's record does not contain the association's partition.
func jobAssociation(j *AccountingJobRow) model.Association {
	return model.Association{Account: j.Account, Cluster: j.Cluster, User: j.User, ID: j.AssocID}
}

func accountingUser(j *AccountingJobRow) string {
	if j.User != "" {
		return j.User
	}
	return userName(j.Users, j.UserID)
}

// plannedWait returns how long a job waited after it became eligible: until it
// started or, if it never started, until it ended. A pending job is still
// waiting, so its wait lasts until j.Now.
func plannedWait(j *AccountingJobRow) model.Opt[uint64] {
	switch {
	case j.EligibleTime <= 0 || j.EligibleTime == timeInfinite:
		return model.Some[uint64](0)
	case j.StartTime == timeNotSet && j.EndTime > 0:
		return model.Some(uint64(max(j.EndTime-j.EligibleTime, 0)))
	case j.StartTime > 0:
		return model.Some(uint64(max(j.StartTime-j.EligibleTime, 0)))
	}
	return model.Some(uint64(max(j.Now-j.EligibleTime, 0))) // still waiting
}

// memory decodes n, an amount of memory. A bit of n shows whether the amount is
// per CPU or per node. If the bit does not match perCPU, memory returns an
// unset number.
func memory(n uint64, perCPU bool) model.Opt[uint64] {
	if (n&model.MemPerCPU != 0) != perCPU {
		return model.Opt[uint64]{}
	}
	return model.Some(n &^ model.MemPerCPU)
}

// accountingPath replaces placeholders in the pattern, such as %j, with values
// from the job's record. The argument step is the step that opens the file.
func accountingPath(j *AccountingJobRow, step model.Opt[uint32], nodes, directory, pattern string) string {
	if pattern == "" {
		return ""
	}
	whole := model.Job{StepID: model.StepID{SLUID: j.DBIndex, JobID: j.JobID, Step: step}, ArrayJobID: j.ArrayJobID, ArrayTaskID: j.ArrayTaskID, Name: j.Name,
		UserName: j.User, UserID: j.UserID, Nodes: nodes, WorkDir: directory, RestartCnt: j.RestartCnt, PathRules: j.PathRules}
	return expandPath(&JobRow{Job: &whole, Users: j.Users}, pattern)
}

func accountingJobPath(j *AccountingJobRow, pattern string) string {
	return accountingPath(j, model.Opt[uint32]{}, j.Nodes, j.WorkDir, pattern)
}

func accountingSteps(j *AccountingJobRow) schema.Stream[AccountingStepRow] {
	return func(each func(*AccountingStepRow) error) error {
		for i := range j.Steps {
			if err := each(&AccountingStepRow{AccountingStep: &j.Steps[i], job: j}); err != nil {
				return err
			}
		}
		return nil
	}
}

// AccountingJobsAnswer is an answer with jobs of the accounting daemon.
type AccountingJobsAnswer struct {
	Jobs schema.Stream[AccountingJobRow]
	Envelope
}

// AccountingJobs declares the fields of an AccountingJobsAnswer.
var AccountingJobs = enveloped("openapi_slurmdbd_jobs_resp", func(a *AccountingJobsAnswer) *Envelope { return &a.Envelope },
	schema.F("jobs", schema.Named("job_list", schema.StreamOf(AccountingJob.Type)), func(a *AccountingJobsAnswer) *schema.Stream[AccountingJobRow] { return &a.Jobs }, "The jobs", schema.Required(0)),
)

// AccountingJobsParams are the parameters of GetAccountingJobs. Clients may
// specify users, groups and QOS by name.
type AccountingJobsParams struct {
	model.AccountingJobFilter
	ReturnCode model.Opt[uint32] // at most 255
}

func jobFlag(name string, bit model.JobFilterFlags, doc string) schema.Field[AccountingJobsParams] {
	return flagText(name, doc, func(p *AccountingJobsParams) *model.JobFilterFlags { return &p.AccountingJobFilter.Flags }, bit)
}

func scheduledFlag(name string, bit uint32, doc string, opts ...schema.Option) schema.Field[AccountingJobsParams] {
	return schema.Set(name, boolText, func(p *AccountingJobsParams, on bool) error {
		if on {
			p.JobFlags = model.Some(p.JobFlags.Or(0) | bit)
		}
		return nil
	}, doc, opts...)
}

var accountingJobsParams = schema.Object("", func() schema.Fields[AccountingJobsParams] {
	return schema.Fields[AccountingJobsParams]{
		texts("account", "Accounts", func(p *AccountingJobsParams) *[]string { return &p.Accounts }),
		numberTexts("association", "Numbers of associations", func(p *AccountingJobsParams) *[]string { return &p.AssocIDs }),
		clusterTexts("cluster", "Clusters, by default this cluster", func(p *AccountingJobsParams) *[]string { return &p.Clusters }),
		texts("constraints", "Required features of the nodes", func(p *AccountingJobsParams) *[]string { return &p.AccountingJobFilter.Constraints }),
		schema.F("cpus_max", decimal, func(p *AccountingJobsParams) *uint32 { return &p.CPUsMax }, "Maximum number of allocated processors", schema.Count, schema.Undocumented(V41)),
		schema.F("cpus_min", decimal, func(p *AccountingJobsParams) *uint32 { return &p.CPUsMin }, "Minimum number of allocated processors", schema.Count, schema.Undocumented(V41)),
		scheduledFlag("scheduler_unset", scheduledUnset, "All jobs, no matter how they were scheduled"),
		scheduledFlag("scheduled_on_submit", scheduledOnSubmit, "Jobs started at submission"),
		scheduledFlag("scheduled_by_main", scheduledByMain, "Jobs started by the main scheduler"),
		scheduledFlag("scheduled_by_backfill", scheduledByBackfill, "Jobs started by the backfill scheduler"),
		scheduledFlag("job_started", jobStarted, "Jobs whose start was reported to accounting"),
		scheduledFlag("job_altered", jobAltered, "Jobs whose record was modified", schema.Since(V44)),
		schema.Set("exit_code", decimal, func(p *AccountingJobsParams, code uint32) error {
			if code > 0xff {
				return fmt.Errorf("expected a number from 0 to 255, got %d", code)
			}
			p.ReturnCode = model.Some(code)
			return nil
		}, "Exit code of the jobs, from 0 to 255; not of those that a signal has ended", schema.Bare),
		jobFlag("show_duplicates", model.JobFilterDuplicates, "Include jobs whose number was reused by a later job"),
		jobFlag("skip_steps", model.JobFilterNoSteps, "Omit job steps"),
		jobFlag("disable_truncate_usage_time", model.JobFilterNoTruncation, "Do not truncate times to the requested period"),
		jobFlag("whole_hetjob", model.JobFilterWholeHetJob, "Show all components of a heterogeneous job if one matches"),
		jobFlag("disable_whole_hetjob", model.JobFilterNoWholeHetJob, "Show only the components of a heterogeneous job that match"),
		jobFlag("disable_wait_for_result", model.JobFilterNoWait, "Do not wait for a slow database"),
		jobFlag("usage_time_as_submit_time", model.JobFilterNoDefaultUsage, "Apply start_time and end_time to the time of submission"),
		jobFlag("show_batch_script", model.JobFilterScript, "Show the script"),
		jobFlag("show_job_environment", model.JobFilterEnvironment, "Request the environment from the accounting daemon; the answer has no field for it"),
		ignoredParam[AccountingJobsParams]("format", schema.Until(V45)),
		texts("groups", "Groups, by name or number", func(p *AccountingJobsParams) *[]string { return &p.GroupIDs }),
		texts("job_name", "Names of jobs", func(p *AccountingJobsParams) *[]string { return &p.Names }),
		schema.F("nodes_max", decimal, func(p *AccountingJobsParams) *uint32 { return &p.NodesMax }, "Maximum number of allocated nodes", schema.Count, schema.Undocumented(V41)),
		schema.F("nodes_min", decimal, func(p *AccountingJobsParams) *uint32 { return &p.NodesMin }, "Minimum number of allocated nodes", schema.Count, schema.Undocumented(V41)),
		texts("partition", "Partitions", func(p *AccountingJobsParams) *[]string { return &p.Partitions }),
		texts("qos", "Qualities of service, by name or number", func(p *AccountingJobsParams) *[]string { return &p.AccountingJobFilter.QOS }),
		schema.F("reason", reasonNumbers, func(p *AccountingJobsParams) *[]string { return &p.Reasons }, "Reasons why the jobs were last pending, or failed; words separated by commas"),
		texts("reservation", "Reservations", func(p *AccountingJobsParams) *[]string { return &p.Reservations }),
		numberTexts("reservation_id", "Numbers of reservations", func(p *AccountingJobsParams) *[]string { return &p.ReservationIDs }),
		schema.F("state", stateNumbers, func(p *AccountingJobsParams) *[]string { return &p.States }, "States that the jobs were in, or ended in, in the period; words separated by commas"),
		schema.F("step", selectedSteps, func(p *AccountingJobsParams) *[]model.SelectedStep { return &p.Steps }, "Jobs, tasks or steps, such as 12, 12_3 or 12.batch, separated by commas"),
		schema.F("timelimit_max", decimal, func(p *AccountingJobsParams) *uint32 { return &p.TimeLimitMax }, "Longest time limit", schema.Unit("min"), schema.Undocumented(V41)),
		schema.F("timelimit_min", decimal, func(p *AccountingJobsParams) *uint32 { return &p.TimeLimitMin }, "Shortest time limit", schema.Unit("min"), schema.Undocumented(V41)),
		schema.F("end_time", instant, func(p *AccountingJobsParams) *model.Time { return &p.UsageEnd }, "Jobs that existed before this time", schema.Unit(TimeText)),
		schema.F("start_time", instant, func(p *AccountingJobsParams) *model.Time { return &p.UsageStart }, "Jobs that existed after this time; default: midnight with slurmdbd, no limit with step or scheddbd", schema.Unit(TimeText)),
		schema.Set("submit_time", instant, func(p *AccountingJobsParams, t model.Time) error {
			p.UsageStart = t
			p.AccountingJobFilter.Flags |= model.JobFilterNoDefaultUsage
			return nil
		}, "Jobs submitted after this time", schema.Unit(TimeText), schema.Undocumented(V41)),
		schema.F("node", hostList, func(p *AccountingJobsParams) *string { return &p.UsedNodes }, "Nodes, as a host list; matches jobs that used at least one of them"),
		texts("users", "Users, by name or number", func(p *AccountingJobsParams) *[]string { return &p.UserIDs }),
		texts("wckey", "Workload keys", func(p *AccountingJobsParams) *[]string { return &p.WCKeys }),
	}
})

// stateNumbers returns the type of a list of job states. Its parser converts
// names to the numbers that the daemon expects.
func stateNumbers() schema.Type[[]string] {
	newest := schema.View{Version: Versions[len(Versions)-1]}
	parse := jobStates.Parser(newest)
	known := strings.Join(jobStates.Shape(newest).Items.Enum, ", ")
	return asList(func(s string) ([]string, error) {
		var list []string
		for _, word := range words(s) {
			if n, err := strconv.ParseUint(word, 10, 32); err == nil {
				list = append(list, strconv.FormatUint(n, 10))
				continue
			}
			var state model.JobState
			var report schema.Report
			if !parse(&report, &schema.Value{Kind: schema.Text, Text: word, Untyped: true}, &state) {
				return nil, fmt.Errorf("%w; expected one of %s", noSuch("state", word), known)
			}
			list = append(list, strconv.FormatUint(uint64(state), 10))
		}
		return list, nil
	})
}

// reasonNumbers returns the type of a list of job reasons. Its parser converts
// names to the numbers that the daemon expects.
func reasonNumbers() schema.Type[[]string] {
	return asList(func(s string) ([]string, error) {
		var list []string
		for _, word := range words(s) {
			n, err := strconv.ParseUint(word, 10, 32)
			if err != nil {
				i := 0
				for i < len(reason.Names) && (reason.Names[i] == "" || !strings.EqualFold(reason.Names[i], word)) {
					i++
				}
				if i == len(reason.Names) {
					return nil, noSuch("reason", word)
				}
				n = uint64(i)
			}
			list = append(list, strconv.FormatUint(n, 10))
		}
		return list, nil
	})
}

var GetAccountingJobs = declare(scope.SlurmdbRead, accountingJobsParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "jobs/", ID: "get_jobs", Paged: true,
	Doc: "List jobs from accounting", Answer: AccountingJobs,
	Description: "Returns jobs from the accounting records, which the daemon keeps long after the controller has dropped the jobs. Each parameter narrows the list or adds details. The accounting daemon decides whose jobs the user may see.",
	AnswerDoc:   "The jobs",
})

type AccountingJobParams struct{ Job model.SelectedStep }

var accountingJobParams = schema.Object("", func() schema.Fields[AccountingJobParams] {
	return schema.Fields[AccountingJobParams]{
		schema.F("job_id", selectedStep, func(p *AccountingJobParams) *model.SelectedStep { return &p.Job }, "Number of the job", schema.Required(0))}
})

var GetAccountingJob = declare(scope.SlurmdbRead, accountingJobParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "job/{job_id}", ID: "get_job",
	Doc: "Show one job from accounting", Answer: AccountingJobs,
	Description: "Returns the job with this number, or a task of a job array, such as 12_3. It returns several records if the number was reused or belongs to an array.",
	AnswerDoc:   "The job, in a list",
})
