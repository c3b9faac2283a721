package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// GetAccountingJobs requests recorded jobs (table db_job_cond).
type GetAccountingJobs struct{ model.AccountingJobFilter }

// Walk encodes or decodes the fields in wire order.
func (m *GetAccountingJobs) Walk(c *codec.Codec) {
	texts(c, "acct_list", &m.Accounts)
	ids(c, "associd_list", &m.AssocIDs)
	clusters(c, "cluster_list", &m.Clusters)
	texts(c, "constraint_list", &m.Constraints)
	c.Uint32("cpus_max", &m.CPUsMax)
	c.Uint32("cpus_min", &m.CPUsMin)
	const anyFlags = 1 // no filter, whereas 0 would be one; a job that was never scheduled has these flags, too
	optAs(c, "db_flags", &m.JobFlags, anyFlags)
	c.Uint32("exitcode", &m.ExitCode)
	c.Uint32("flags", (*uint32)(&m.Flags))
	texts(c, "format_list", &m.Format)
	ids(c, "groupid_list", &m.GroupIDs)
	texts(c, "jobname_list", &m.Names)
	c.Uint32("nodes_max", &m.NodesMax)
	c.Uint32("nodes_min", &m.NodesMin)
	texts(c, "partition_list", &m.Partitions)
	ids(c, "qos_list", &m.QOS)
	texts(c, "reason_list", &m.Reasons)
	texts(c, "resv_list", &m.Reservations)
	ids(c, "resvid_list", &m.ReservationIDs)
	codec.List(c, "step_list", "selected_step", &m.Steps, selectedStep)
	texts(c, "state_list", &m.States)
	c.Uint32("timelimit_max", &m.TimeLimitMax)
	c.Uint32("timelimit_min", &m.TimeLimitMin)
	c.Time("usage_end", &m.UsageEnd)
	c.Time("usage_start", &m.UsageStart)
	c.String("used_nodes", &m.UsedNodes)
	ids(c, "userid_list", &m.UserIDs)
	texts(c, "wckey_list", &m.WCKeys)
}

var _ = recordList(RecordList{Get: AccountingGetJobs, Got: AccountingGotJobs},
	func(f model.AccountingJobFilter) Body { return &GetAccountingJobs{f} }, func() *AccountingJobs { return new(AccountingJobs) })

// GetAccountingJobPage requests a page of recorded jobs from the bundled
// accounting daemon. It is not a message of Slurm's: its number is outside the
// range of Slurm's numbers. A client sends it only to a daemon whose answer to
// the client's PersistInit has the comment PagesOffered. slurmdbd sends no
// comment in such an answer.
type GetAccountingJobPage struct{ model.AccountingJobPage }

// PagesOffered is the comment by which a daemon reports that it accepts a
// GetAccountingJobPage.
const PagesOffered = "schedrestd: pages of jobs"

// Walk encodes or decodes the fields in wire order.
func (m *GetAccountingJobPage) Walk(c *codec.Codec) {
	filter := GetAccountingJobs{m.AccountingJobFilter}
	if filter.Walk(c); c.Storing() {
		m.AccountingJobFilter = filter.AccountingJobFilter
	}
	c.Uint32("after_job_id", &m.After.JobID)
	c.String("after_cluster", &m.After.Cluster)
	c.Uint64("after_run", &m.After.Run)
	c.Uint32("limit", &m.Limit)
}

var _ = recordList(RecordList{Get: AccountingGetJobPage, Got: AccountingGotJobs},
	func(p model.AccountingJobPage) Body { return &GetAccountingJobPage{p} }, func() *AccountingJobs { return new(AccountingJobs) })

// AccountingJobs is the answer to GetAccountingJobs and GetAccountingJobPage.
type AccountingJobs struct {
	ListResponse[model.AccountingJob]
}

// Walk encodes or decodes the fields in wire order.
func (m *AccountingJobs) Walk(c *codec.Codec) { m.walk(c, "db_job_rec", accountingJob) }

// accountingJob encodes or decodes a job (table db_job_rec).
func accountingJob(c *codec.Codec, j *model.AccountingJob) {
	c.String("account", &j.Account)
	c.Text("admin_comment", &j.AdminComment)
	c.Uint32("alloc_nodes", &j.AllocNodes)
	c.Uint32("array_job_id", &j.ArrayJobID)
	c.Uint32("array_max_tasks", &j.ArrayMaxTasks)
	c.OptUint32("array_task_id", &j.ArrayTaskID)
	c.String("array_task_str", &j.ArrayTasks)
	c.Uint32("associd", &j.AssocID)
	c.String("blockid", &j.BlockID)
	c.String("cluster", &j.Cluster)
	c.String("constraints", &j.Constraints)
	c.String("container", &j.Container)
	c.Uint64("db_index", &j.DBIndex)
	c.Uint32("derived_ec", &j.DerivedExitCode)
	c.Text("derived_es", &j.DerivedExitText)
	c.Uint32("elapsed", &j.Elapsed)
	c.Time("eligible", &j.EligibleTime)
	c.Time("end", &j.EndTime)
	c.String("env", &j.Environment)
	if c.Since(codec.V2605) {
		c.String("exclusive", &j.Exclusive)
	}
	c.Uint32("exitcode", &j.ExitCode)
	if c.Since(codec.V2302) {
		c.Text("extra", &j.Extra)
		c.String("failed_node", &j.FailedNode)
	}
	c.Uint32("flags", &j.Flags)
	c.Uint32("gid", &j.GroupID)
	c.Uint32("jobid", &j.JobID)
	c.String("jobname", &j.Name)
	if c.Until(codec.V2311) {
		c.Uint32("lft", &j.Left)
	}
	if c.Since(codec.V2302) {
		c.String("licenses", &j.Licenses)
	}
	if c.Since(codec.V2311) {
		c.String("lineage", &j.Lineage)
	}
	c.String("mcs_label", &j.MCSLabel)
	c.String("nodes", &j.Nodes)
	c.Uint32("het_job_id", &j.HetJobID)
	c.OptUint32("het_job_offset", &j.HetJobOffset)
	if c.Since(codec.V2605) {
		c.String("oversubscribe", &j.Oversubscribe)
	}
	c.String("partition", &j.Partition)
	c.OptUint32("priority", &j.Priority)
	c.Uint32("qosid", &j.QOSID)
	if c.Since(codec.V2411) {
		c.String("qos_req", &j.QOSReq)
	}
	c.Uint32("req_cpus", &j.ReqCPUs)
	c.Uint64("req_mem", &j.ReqMem)
	c.Uint32("requid", &j.ReqUserID)
	if c.Since(codec.V2411) {
		c.Uint16("restart_cnt", &j.RestartCnt)
	}
	c.String("resv_name", &j.Reservation)
	c.Uint32("resvid", &j.ReservationID)
	if c.Since(codec.V2505) {
		c.String("resv_req", &j.ReservationReq)
	}
	accountingJobTail(c, j)
}

func accountingJobTail(c *codec.Codec, j *model.AccountingJob) {
	c.String("script", &j.Script)
	if c.Since(codec.V2605) {
		c.Uint64("sluid", &j.SLUID)
	}
	c.Uint32("show_full", &j.ShowFull)
	c.Time("start", &j.StartTime)
	c.Uint32("state", (*uint32)(&j.State))
	c.Uint32("state_reason_prev", &j.StateReason)
	accountingSteps(c, &j.Steps)
	if c.Since(codec.V2505) {
		c.Uint16("segment_size", &j.SegmentSize)
	}
	j.PathRules = pathRules(c)
	if c.Since(codec.V2405) {
		c.String("std_err", &j.StdErr)
		c.String("std_in", &j.StdIn)
		c.String("std_out", &j.StdOut)
	}
	c.Time("submit", &j.SubmitTime)
	c.String("submit_line", &j.SubmitLine)
	c.Uint32("suspended", &j.Suspended)
	c.Text("system_comment", &j.SystemComment)
	c.Uint64("sys_cpu_sec", &j.SystemCPUSec)
	c.Uint64("sys_cpu_usec", &j.SystemCPUUsec)
	c.OptUint32("timelimit", &j.TimeLimit)
	c.Uint64("tot_cpu_sec", &j.TotalCPUSec)
	c.Uint64("tot_cpu_usec", &j.TotalCPUUsec)
	c.String("tres_alloc_str", &j.TRESAlloc)
	c.String("tres_req_str", &j.TRESReq)
	c.Uint32("uid", &j.UserID)
	c.String("user", &j.User)
	c.Uint64("user_cpu_sec", &j.UserCPUSec)
	c.Uint64("user_cpu_usec", &j.UserCPUUsec)
	c.Text("wckey", &j.WCKey)
	c.Uint32("wckeyid", &j.WCKeyID)
	c.String("work_dir", &j.WorkDir)
}

// accountingSteps encodes or decodes a list of steps. It sends nil as an empty
// list, not as null.
func accountingSteps(c *codec.Codec, steps *[]model.AccountingStep) {
	list := *steps
	if list == nil {
		list = []model.AccountingStep{}
	}
	if codec.List(c, "steps", "db_step_rec", &list, accountingStep); c.Storing() {
		*steps = list
	}
}

// accountingStep encodes or decodes a step (table db_step_rec).
func accountingStep(c *codec.Codec, s *model.AccountingStep) {
	c.String("container", &s.Container)
	c.Uint32("elapsed", &s.Elapsed)
	c.Time("end", &s.EndTime)
	c.Uint32("exitcode", &s.ExitCode)
	c.Uint32("nnodes", &s.NodeCount)
	c.String("nodes", &s.Nodes)
	c.Uint32("ntasks", &s.NumTasks)
	c.OptUint32("req_cpufreq_min", &s.CPUFreqMin)
	c.OptUint32("req_cpufreq_max", &s.CPUFreqMax)
	c.Uint32("req_cpufreq_gov", &s.CPUFreqGov)
	c.Uint32("requid", &s.ReqUserID)
	codec.Record(c, "stats", "db_stats", &s.Stats, stepStats)
	c.Time("start", &s.StartTime)
	c.Uint16In32("state", (*uint32)(&s.State))
	codec.Record(c, "step_id", "step_id", &s.StepID, stepID)
	c.String("stepname", &s.Name)
	if c.Since(codec.V2505) {
		c.String("cwd", &s.WorkDir)
		c.String("std_err", &s.StdErr)
		c.String("std_in", &s.StdIn)
		c.String("std_out", &s.StdOut)
	}
	c.String("submit_line", &s.SubmitLine)
	c.Uint32("suspended", &s.Suspended)
	c.Uint64("sys_cpu_sec", &s.SystemCPUSec)
	c.Uint32("sys_cpu_usec", &s.SystemCPUUsec)
	c.Uint32("task_dist", &s.TaskDist)
	if c.Since(codec.V2505) {
		c.OptUint32("timelimit", &s.TimeLimit)
	}
	c.Uint64("tot_cpu_sec", &s.TotalCPUSec)
	c.Uint32("tot_cpu_usec", &s.TotalCPUUsec)
	c.String("tres_alloc_str", &s.TRESAlloc)
	c.Uint64("user_cpu_sec", &s.UserCPUSec)
	c.Uint32("user_cpu_usec", &s.UserCPUUsec)
}

// stepStats encodes or decodes the resources that a step used (table db_stats).
func stepStats(c *codec.Codec, s *model.StepStats) {
	c.Float("act_cpufreq", &s.CPUFreq)
	c.OptUint64("consumed_energy", &s.ConsumedEnergy)
	stepUsage(c, "tres_usage_in_", &s.In)
	stepUsage(c, "tres_usage_out_", &s.Out)
}

func stepUsage(c *codec.Codec, prefix string, u *model.StepUsage) {
	c.String(prefix+"ave", &u.Average)
	c.String(prefix+"max", &u.Max)
	c.String(prefix+"max_nodeid", &u.MaxNode)
	c.String(prefix+"max_taskid", &u.MaxTask)
	c.String(prefix+"min", &u.Min)
	c.String(prefix+"min_nodeid", &u.MinNode)
	c.String(prefix+"min_taskid", &u.MinTask)
	c.String(prefix+"tot", &u.Total)
}
