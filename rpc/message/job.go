package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// JobInfoRequest requests jobs (table job_info_request).
type JobInfoRequest struct {
	LastUpdate model.Time // jobs are returned only if something changed after this time; if 0, always
	ShowFlags  uint16     // Show… bits
	JobIDs     []uint32   // nil for all
}

// Walk encodes or decodes the fields in wire order.
func (m *JobInfoRequest) Walk(c *codec.Codec) {
	c.Time("last_update", &m.LastUpdate)
	c.Uint16("show_flags", &m.ShowFlags)
	codec.List(c, "job_ids", "u32", &m.JobIDs, func(c *codec.Codec, id *uint32) { c.Uint32("job_id", id) })
}

// JobInfoSingleRequest requests one job (table job_info_single_request).
type JobInfoSingleRequest struct {
	JobID     model.Opt[uint32]
	ShowFlags uint16 // Show… bits
}

// Walk encodes or decodes the fields in wire order.
func (m *JobInfoSingleRequest) Walk(c *codec.Codec) {
	jobID(c, &m.JobID)
	c.Uint16("show_flags", &m.ShowFlags)
}

// JobInfo answers JobInfoRequest and JobInfoSingleRequest (table
// job_info_response).
type JobInfo struct {
	LastUpdate   model.Time
	LastBackfill model.Time
	Jobs         codec.Stream[model.Job]

	Without model.JobParts // decoding: parts that are skipped
}

// Walk encodes or decodes the fields in wire order.
func (m *JobInfo) Walk(c *codec.Codec) {
	n := c.Count("record_count", m.Jobs.Size())
	c.Time("last_update", &m.LastUpdate)
	c.Time("last_backfill", &m.LastBackfill)
	c.Loop("record_count", n, func(int) {
		codec.Next(c, "jobs", "job_info_record", &m.Jobs, func(c *codec.Codec, j *model.Job) { jobWithout(c, j, m.Without) })
	})
}

// pathRules returns the rules for the files of jobs of the daemon's release.
func pathRules(c *codec.Codec) model.PathRules {
	if c.Since(codec.V2511) {
		return model.NewPathRules
	}
	return model.OldPathRules
}

// job encodes or decodes one element of a JobInfo (table job_info_record).
func job(c *codec.Codec, j *model.Job) { jobWithout(c, j, 0) }

// jobWithout encodes or decodes a job. A decoder skips the parts in without.
func jobWithout(c *codec.Codec, j *model.Job, without model.JobParts) {
	noIndexes := without&model.JobNodeIndexes != 0
	if c.Since(codec.V2511) {
		codec.Record(c, "step_id", "step_id", &j.StepID, stepID)
	}
	if c.Since(codec.V2411) {
		c.String("account", &j.Account)
		c.String("admin_comment", &j.AdminComment)
		c.String("alloc_node", &j.AllocNode)
		c.Uint32("alloc_sid", &j.AllocSID)
	}
	c.Uint32("array_job_id", &j.ArrayJobID)
	c.OptUint32("array_task_id", &j.ArrayTaskID)
	if c.Until(codec.V2411) {
		c.String("array_task_str", &j.ArrayTasks)
		c.Uint32("array_max_tasks", &j.ArrayMaxTasks)
	}
	c.Uint32("assoc_id", &j.AssocID)
	if c.Since(codec.V2411) {
		c.String("batch_features", &j.BatchFeatures)
		c.Uint16("batch_flag", &j.BatchFlag)
		c.String("batch_host", &j.BatchHost)
		c.Uint64("bitflags", &j.Flags)
		c.String("burst_buffer", &j.BurstBuffer)
		c.String("burst_buffer_state", &j.BurstBufferState)
		c.Float("billable_tres", &j.BillableTRES)
		c.String("comment", &j.Comment)
	}
	c.String("container", &j.Container)
	if c.Since(codec.V2302) {
		c.String("container_id", &j.ContainerID)
	}
	if c.Since(codec.V2605) {
		c.String("container_type", &j.ContainerType)
	}
	if c.Since(codec.V2411) {
		c.String("cpus_per_tres", &j.CPUsPerTRES)
		c.Time("deadline", &j.Deadline)
	}
	c.OptUint32("delay_boot", &j.DelayBoot)
	if c.Since(codec.V2411) {
		c.Uint32("derived_ec", &j.DerivedExitCode)
		c.Uint32("exit_code", &j.ExitCode)
		c.String("extra", &j.Extra)
	}
	if c.Since(codec.V2302) {
		c.String("failed_node", &j.FailedNode)
	}
	if c.Until(codec.V2411) {
		c.Uint32("job_id", &j.StepID.JobID)
		c.Uint32("user_id", &j.UserID)
	}
	if c.Since(codec.V2411) {
		c.Bool("has_fed", &j.Federated)
		if c.If("has_fed", j.Federated) {
			c.String("fed_origin_str", &j.FedOrigin)
			c.Uint64("fed_siblings_active", &j.FedSiblingsActive)
			c.String("fed_siblings_active_str", &j.FedSiblingsActiveText)
			c.Uint64("fed_siblings_viable", &j.FedSiblingsViable)
			c.String("fed_siblings_viable_str", &j.FedSiblingsViableText)
		}
		c.EndIf()
		c.String("gres_total", &j.GRESTotal)
	}
	c.Uint32("group_id", &j.GroupID)
	c.Uint32("het_job_id", &j.HetJobID)
	c.String("het_job_id_set", &j.HetJobIDSet)
	c.Uint32("het_job_offset", &j.HetJobOffset)
	if c.Until(codec.V2411) {
		c.Uint32("profile", &j.Profile)
	}
	if c.Since(codec.V2411) && c.Until(codec.V2511) {
		c.Uint32("job_id", &j.StepID.JobID)
	}
	c.Uint32("job_state", (*uint32)(&j.State))
	if c.Until(codec.V2411) {
		c.Uint16("batch_flag", &j.BatchFlag)
	}
	if c.Until(codec.V2302) {
		c.Uint16In32("state_reason", &j.StateReason)
	}
	if c.Since(codec.V2302) && c.Until(codec.V2411) {
		c.Uint32("state_reason", &j.StateReason)
	}
	if c.Until(codec.V2411) {
		c.Uint8("power_flags", &j.PowerFlags)
	}
	if c.Since(codec.V2411) {
		c.Time("last_sched_eval", &j.LastSchedEval)
		c.String("licenses", &j.Licenses)
	}
	if c.Since(codec.V2505) {
		c.String("licenses_allocated", &j.LicensesAllocated)
	}
	if c.Since(codec.V2411) {
		c.Uint16("mail_type", &j.MailType)
		c.String("mail_user", &j.MailUser)
		c.String("mcs_label", &j.MCSLabel)
		c.String("mem_per_tres", &j.MemPerTRES)
		c.String("name", &j.Name)
		c.String("network", &j.Network)
		c.Time("preempt_time", &j.PreemptTime)
		c.Time("pre_sus_time", &j.PreSusTime)
		c.Uint32("priority", &j.Priority)
		c.Uint32("profile", &j.Profile)
	}
	c.Uint8("reboot", &j.Reboot)
	if c.Since(codec.V2411) {
		c.Uint32("req_switch", &j.ReqSwitches)
		c.Time("resize_time", &j.ResizeTime)
	}
	c.Uint16("restart_cnt", &j.RestartCnt)
	if c.Until(codec.V2411) {
		c.Uint16("show_flags", &j.ShowFlags)
		c.Time("deadline", &j.Deadline)
		c.Uint32("alloc_sid", &j.AllocSID)
		c.OptUint32("time_limit", &j.TimeLimit)
	}
	if c.Since(codec.V2411) {
		c.String("resv_name", &j.Reservation)
		c.String("resv_ports", &j.ResvPorts)
		c.String("selinux_context", &j.SELinuxContext)
		c.Uint32("site_factor", &j.SiteFactor)
		c.Uint16("start_protocol_ver", &j.StartProtocolVer)
		c.String("state_desc", &j.StateDescription)
		c.Uint32("state_reason", &j.StateReason)
		c.Time("suspend_time", &j.SuspendTime)
		c.String("system_comment", &j.SystemComment)
	}
	c.OptUint32("time_min", &j.TimeMin)
	if c.Until(codec.V2411) {
		c.Uint32("nice", &j.Nice)
		c.Time("submit_time", &j.SubmitTime)
		c.Time("eligible_time", &j.EligibleTime)
		c.Time("accrue_time", &j.AccrueTime)
	}
	if c.Since(codec.V2411) {
		c.String("tres_bind", &j.TRESBind)
		c.String("tres_alloc_str", &j.TRESAlloc)
		c.String("tres_req_str", &j.TRESReq)
		c.String("tres_freq", &j.TRESFreq)
		c.String("tres_per_job", &j.TRESPerJob)
		c.String("tres_per_node", &j.TRESPerNode)
		c.String("tres_per_socket", &j.TRESPerSocket)
		c.String("tres_per_task", &j.TRESPerTask)
		c.Uint32("user_id", &j.UserID)
		c.String("user_name", &j.UserName)
		c.Uint32("wait4switch", &j.WaitForSwitch)
		c.String("wckey", &j.WCKey)
		c.String("array_task_str", &j.ArrayTasks)
		c.Uint32("array_max_tasks", &j.ArrayMaxTasks)
		c.OptUint32("time_limit", &j.TimeLimit)
	}
	c.Time("start_time", &j.StartTime)
	c.Time("end_time", &j.EndTime)
	if c.Until(codec.V2411) {
		c.Time("suspend_time", &j.SuspendTime)
		c.Time("pre_sus_time", &j.PreSusTime)
		c.Time("resize_time", &j.ResizeTime)
		c.Time("last_sched_eval", &j.LastSchedEval)
		c.Time("preempt_time", &j.PreemptTime)
		c.Uint32("priority", &j.Priority)
	}
	if c.Since(codec.V2405) {
		c.Uint32s("priority_array", &j.PriorityArray)
		c.String("priority_array_names", &j.PriorityArrayNames)
	}
	if c.Until(codec.V2411) {
		c.Float("billable_tres", &j.BillableTRES)
	}
	c.String("cluster", &j.Cluster)
	c.String("nodes", &j.Nodes)
	c.String("sched_nodes", &j.SchedNodes)
	c.String("partition", &j.Partition)
	if c.Until(codec.V2411) {
		c.String("account", &j.Account)
		c.String("admin_comment", &j.AdminComment)
		c.Uint32("site_factor", &j.SiteFactor)
		c.String("network", &j.Network)
		c.String("comment", &j.Comment)
	}
	if c.Since(codec.V2302) && c.Until(codec.V2411) {
		c.String("extra", &j.Extra)
	}
	if c.Until(codec.V2411) {
		c.String("container", &j.Container)
		c.String("batch_features", &j.BatchFeatures)
		c.String("batch_host", &j.BatchHost)
		c.String("burst_buffer", &j.BurstBuffer)
		c.String("burst_buffer_state", &j.BurstBufferState)
		c.String("system_comment", &j.SystemComment)
	}
	c.String("qos", &j.QOS)
	c.Time("preemptable_time", &j.PreemptableTime)
	if c.Until(codec.V2411) {
		c.String("licenses", &j.Licenses)
		c.String("state_desc", &j.StateDescription)
		c.String("resv_name", &j.Reservation)
	}
	if c.Since(codec.V2405) && c.Until(codec.V2411) {
		c.String("resv_ports", &j.ResvPorts)
	}
	if c.Until(codec.V2411) {
		c.String("mcs_label", &j.MCSLabel)
		c.Uint32("exit_code", &j.ExitCode)
		c.Uint32("derived_ec", &j.DerivedExitCode)
		c.String("gres_total", &j.GRESTotal)
	}
	c.SkipIf(without&model.JobAllocation != 0, func() {
		codec.Record(c, "job_resources", "job_resources", &j.Resources, func(c *codec.Codec, r *model.JobResources) { jobResources(c, r, noIndexes) })
	})
	c.NullableStrings("gres_detail_str", &j.GRESDetail)
	if c.Until(codec.V2411) {
		c.String("name", &j.Name)
		c.String("user_name", &j.UserName)
		c.String("wckey", &j.WCKey)
		c.Uint32("req_switch", &j.ReqSwitches)
		c.Uint32("wait4switch", &j.WaitForSwitch)
		c.String("alloc_node", &j.AllocNode)
	}
	c.SkipIf(noIndexes, func() { c.Bitmap("node_inx", &j.NodeIndexes) })
	if c.Until(codec.V2302) {
		selectPlugin(c, "select_jobinfo_plugin_id")
	}
	if c.Until(codec.V2411) {
		c.String("features", &j.Features)
		c.String("prefer", &j.Prefer)
		c.String("cluster_features", &j.ClusterFeatures)
		c.String("work_dir", &j.WorkDir)
		c.String("dependency", &j.Dependency)
		c.String("command", &j.Command)
		c.Uint32("num_cpus", &j.NumCPUs)
		c.Uint32("max_cpus", &j.MaxCPUs)
		c.Uint32("num_nodes", &j.NumNodes)
		c.Uint32("max_nodes", &j.MaxNodes)
	}
	if c.Since(codec.V2302) && c.Until(codec.V2411) {
		c.Bitmap("job_size_str", &j.JobSizes)
	}
	if c.Until(codec.V2411) {
		c.Uint16("requeue", &j.Requeue)
		c.OptUint16("ntasks_per_node", &j.NTasksPerNode)
		c.OptUint16("ntasks_per_tres", &j.NTasksPerTRES)
		c.Uint32("num_tasks", &j.NumTasks)
		c.OptUint16("shared", &j.Shared)
		c.OptUint32("cpu_freq_min", &j.CPUFreqMin)
		c.OptUint32("cpu_freq_max", &j.CPUFreqMax)
		c.OptUint32("cpu_freq_gov", &j.CPUFreqGov)
		c.String("cronspec", &j.CronSpec)
	}
	if c.Since(codec.V2411) {
		c.Bool("has_details", &j.Detailed)
		if c.If("!has_details", !j.Detailed) {
			c.Uint32("num_cpus", &j.NumCPUs)
			c.Uint32("num_nodes", &j.NumNodes)
			c.Uint32("nice", &j.Nice)
		}
		if c.Else(j.Detailed) {
			jobDetails(c, j)
		}
		c.EndIf()
	}
	c.Uint16("contiguous", &j.Contiguous)
	c.OptUint16("core_spec", &j.CoreSpec)
	c.OptUint16("cpus_per_task", &j.CPUsPerTask)
	c.Uint16("pn_min_cpus", &j.MinCPUsPerNode)
	c.Uint64("pn_min_memory", &j.MinMemory)
	c.Uint32("pn_min_tmp_disk", &j.MinTmpDisk)
	if c.Since(codec.V2411) {
		c.OptUint16("oom_kill_step", &j.OOMKillStep)
	}
	c.String("req_nodes", &j.ReqNodes)
	c.SkipIf(noIndexes, func() { c.Bitmap("req_node_inx", &j.ReqNodeIndexes) })
	c.String("exc_nodes", &j.ExcNodes)
	c.SkipIf(noIndexes, func() { c.Bitmap("exc_node_inx", &j.ExcNodeIndexes) })
	j.PathRules = pathRules(c)
	c.String("std_err", &j.StdErr)
	c.String("std_in", &j.StdIn)
	c.String("std_out", &j.StdOut)
	codec.Record(c, "multi_core", "multi_core_data", &j.MultiCore, multiCore)
	if c.Until(codec.V2411) {
		c.Uint64("bitflags", &j.Flags)
		c.String("tres_alloc_str", &j.TRESAlloc)
		c.String("tres_req_str", &j.TRESReq)
		c.Uint16("start_protocol_ver", &j.StartProtocolVer)
		c.String("fed_origin_str", &j.FedOrigin)
		c.Uint64("fed_siblings_active", &j.FedSiblingsActive)
		c.String("fed_siblings_active_str", &j.FedSiblingsActiveText)
		c.Uint64("fed_siblings_viable", &j.FedSiblingsViable)
		c.String("fed_siblings_viable_str", &j.FedSiblingsViableText)
		c.String("cpus_per_tres", &j.CPUsPerTRES)
		c.String("mem_per_tres", &j.MemPerTRES)
		c.String("tres_bind", &j.TRESBind)
		c.String("tres_freq", &j.TRESFreq)
		c.String("tres_per_job", &j.TRESPerJob)
		c.String("tres_per_node", &j.TRESPerNode)
		c.String("tres_per_socket", &j.TRESPerSocket)
		c.String("tres_per_task", &j.TRESPerTask)
		c.Uint16("mail_type", &j.MailType)
		c.String("mail_user", &j.MailUser)
		c.String("selinux_context", &j.SELinuxContext)
	}
}

// jobDetails encodes or decodes the details of a job, which are a part of a
// job_info_record. From protocol 42 on, controllers omit the details of jobs
// whose requirements they no longer have.
func jobDetails(c *codec.Codec, j *model.Job) {
	c.Time("accrue_time", &j.AccrueTime)
	c.Time("eligible_time", &j.EligibleTime)
	c.String("cluster_features", &j.ClusterFeatures)
	c.OptUint32("cpu_freq_gov", &j.CPUFreqGov)
	c.OptUint32("cpu_freq_max", &j.CPUFreqMax)
	c.OptUint32("cpu_freq_min", &j.CPUFreqMin)
	c.String("dependency", &j.Dependency)
	c.Bitmap("job_size_str", &j.JobSizes)
	c.Uint32("nice", &j.Nice)
	c.OptUint16("ntasks_per_node", &j.NTasksPerNode)
	c.OptUint16("ntasks_per_tres", &j.NTasksPerTRES)
	c.Uint16("requeue", &j.Requeue)
	if c.Since(codec.V2505) {
		c.OptUint16("segment_size", &j.SegmentSize)
	}
	c.Time("submit_time", &j.SubmitTime)
	c.String("work_dir", &j.WorkDir)
	c.String("features", &j.Features)
	c.String("prefer", &j.Prefer)
	c.String("command", &j.Command)
	if c.Since(codec.V2511) {
		c.String("submit_line", &j.SubmitLine)
	}
	c.Uint32("num_cpus", &j.NumCPUs)
	c.Uint32("max_cpus", &j.MaxCPUs)
	c.Uint32("num_nodes", &j.NumNodes)
	c.Uint32("max_nodes", &j.MaxNodes)
	c.Uint32("num_tasks", &j.NumTasks)
	if c.Since(codec.V2605) {
		c.OptUint16("exclusive", &j.Exclusive)
	}
	c.OptUint16("shared", &j.Shared)
	if c.Since(codec.V2605) {
		c.OptUint16("oversubscribe", &j.Oversubscribe)
	}
	c.String("cronspec", &j.CronSpec)
	if c.Since(codec.V2605) {
		c.OptUint16("mem_update_delay", &j.MemUpdateDelay)
		c.OptUint16("mem_update_margin", &j.MemUpdateMargin)
	}
}

// stepID encodes or decodes the id of a job or step (table step_id).
func stepID(c *codec.Codec, s *model.StepID) {
	if c.Since(codec.V2411) {
		c.Uint64("sluid", &s.SLUID)
	}
	c.Uint32("job_id", &s.JobID)
	c.OptUint32("step_id", &s.Step)
	c.OptUint32("step_het_comp", &s.HetComponent)
}
