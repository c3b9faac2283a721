package message

import (
	"strings"

	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// jobDesc encodes or decodes a job's description (table job_desc).
func jobDesc(c *codec.Codec, d *model.JobDesc) {
	if c.Since(codec.V2511) {
		jobAsStep(c, &d.JobID)
	}
	c.OptUint32("site_factor", &d.SiteFactor)
	c.Text("batch_features", &d.BatchFeatures)
	c.Text("cluster_features", &d.ClusterFeatures)
	c.Text("clusters", &d.Clusters)
	c.OptUint16("contiguous", &d.Contiguous)
	c.Text("container", &d.Container)
	if c.Since(codec.V2302) {
		c.Text("container_id", &d.ContainerID)
	}
	if c.Since(codec.V2605) {
		c.Text("container_type", &d.ContainerType)
	}
	c.OptUint16("core_spec", &d.CoreSpec)
	c.OptUint32("task_dist", &d.Distribution)
	c.OptUint16("kill_on_node_fail", &d.KillOnNodeFail)
	c.Text("features", &d.Features)
	c.Uint64("fed_siblings_active", &d.FedSiblingsActive)
	c.Uint64("fed_siblings_viable", &d.FedSiblingsViable)
	if c.Until(codec.V2511) {
		c.OptUint32("job_id", &d.JobID)
	}
	c.String("job_id_str", &d.JobIDText)
	c.Text("name", &d.Name)
	c.Text("alloc_node", &d.AllocNode)
	c.OptUint32("alloc_sid", &d.AllocSID)
	c.Text("array_inx", &d.Array)
	c.Text("burst_buffer", &d.BurstBuffer)
	c.OptUint16("pn_min_cpus", &d.MinCPUsPerNode)
	c.OptUint64("pn_min_memory", &d.MinMemory)
	if c.Since(codec.V2605) {
		c.OptUint16("mem_update_delay", &d.MemUpdateDelay)
		c.OptUint16("mem_update_margin", &d.MemUpdateMargin)
	}
	if c.Since(codec.V2411) {
		c.OptUint16("oom_kill_step", &d.OOMKillStep)
	}
	c.OptUint32("pn_min_tmp_disk", &d.MinTmpDisk)
	if c.Until(codec.V2411) {
		c.OptUint8("power_flags", &d.PowerFlags)
	}
	c.Text("prefer", &d.Prefer)
	c.OptUint32("cpu_freq_min", &d.CPUFreqMin)
	c.OptUint32("cpu_freq_max", &d.CPUFreqMax)
	c.OptUint32("cpu_freq_gov", &d.CPUFreqGov)
	c.Text("partition", &d.Partition)
	c.OptUint32("priority", &d.Priority)
	c.Text("dependency", &d.Dependency)
	c.Text("account", &d.Account)
	c.Text("admin_comment", &d.AdminComment)
	c.Text("comment", &d.Comment)
	c.OptUint32("nice", &d.Nice)
	c.Uint32("profile", &d.Profile)
	c.Text("qos", &d.QOS)
	c.Text("mcs_label", &d.MCSLabel)
	c.Text("origin_cluster", &d.OriginCluster)
	c.Uint8("open_mode", &d.OpenMode)
	c.OptUint8("overcommit", &d.Overcommit)
	c.Text("acctg_freq", &d.AccountingFrequency)
	c.OptUint32("num_tasks", &d.NumTasks)
	c.Text("req_context", &d.ReqContext)
	c.Text("req_nodes", &d.ReqNodes)
	c.Text("exc_nodes", &d.ExcNodes)
	c.Strings("environment", &d.Environment)
	c.Strings("spank_job_env", &d.SpankEnvironment)
	c.String("script", &d.Script)
	c.Strings("argv", &d.Argv)
	c.Text("std_err", &d.StdErr)
	c.Text("std_in", &d.StdIn)
	c.Text("std_out", &d.StdOut)
	c.Text("submit_line", &d.SubmitLine)
	c.Text("work_dir", &d.WorkDir)
	c.Uint16("immediate", &d.Immediate)
	c.OptUint16("reboot", &d.Reboot)
	c.OptUint16("requeue", &d.Requeue)
	c.OptUint16("shared", &d.Shared)
	c.OptUint16("cpus_per_task", &d.CPUsPerTask)
	c.OptUint16("ntasks_per_node", &d.NTasksPerNode)
	c.OptUint16("ntasks_per_board", &d.NTasksPerBoard)
	c.OptUint16("ntasks_per_socket", &d.NTasksPerSocket)
	c.OptUint16("ntasks_per_core", &d.NTasksPerCore)
	c.OptUint16("ntasks_per_tres", &d.NTasksPerTRES)
	c.OptUint16("plane_size", &d.PlaneSize)
	c.OptUint16("cpu_bind_type", &d.CPUBindType)
	c.OptUint16("mem_bind_type", &d.MemBindType)
	c.Text("cpu_bind", &d.CPUBind)
	c.Text("mem_bind", &d.MemBind)
	c.OptUint32("time_limit", &d.TimeLimit)
	c.OptUint32("time_min", &d.TimeMin)
	c.OptUint32("min_cpus", &d.MinCPUs)
	c.OptUint32("max_cpus", &d.MaxCPUs)
	c.OptUint32("min_nodes", &d.MinNodes)
	c.OptUint32("max_nodes", &d.MaxNodes)
	if c.Since(codec.V2302) {
		c.Text("job_size_str", &d.JobSizes)
	}
	c.OptUint16("boards_per_node", &d.BoardsPerNode)
	c.OptUint16("sockets_per_board", &d.SocketsPerBoard)
	c.OptUint16("sockets_per_node", &d.SocketsPerNode)
	c.OptUint16("cores_per_socket", &d.CoresPerSocket)
	c.OptUint16("threads_per_core", &d.ThreadsPerCore)
	optID(c, "user_id", &d.UserID)
	optID(c, "group_id", &d.GroupID)
	c.Uint16("alloc_resp_port", &d.AllocRespPort)
	if c.Since(codec.V2505) {
		c.Text("alloc_tls_cert", &d.AllocTLSCert)
	}
	c.Text("resp_host", &d.RespHost)
	c.Uint16("other_port", &d.OtherPort)
	if c.Since(codec.V2405) {
		c.OptUint16("resv_port_cnt", &d.ResvPortCnt)
	}
	c.Text("network", &d.Network)
	c.Time("begin_time", &d.BeginTime)
	c.Time("end_time", &d.EndTime)
	c.Time("deadline", &d.Deadline)
	c.Text("licenses", &d.Licenses)
	c.OptUint16("mail_type", &d.MailType)
	c.Text("mail_user", &d.MailUser)
	c.Text("reservation", &d.Reservation)
	c.Uint16("restart_cnt", &d.RestartCnt)
	c.Uint16("warn_flags", &d.WarnFlags)
	c.Uint16("warn_signal", &d.WarnSignal)
	c.Uint16("warn_time", &d.WarnTime)
	c.Text("wckey", &d.WCKey)
	c.OptUint32("req_switch", &d.ReqSwitches)
	c.OptUint32("wait4switch", &d.WaitForSwitch)
	if c.Until(codec.V2302) {
		selectPlugin(c, "select_jobinfo_plugin_id")
	}
	c.OptUint16("wait_all_nodes", &d.WaitAllNodes)
	c.Uint64("bitflags", &d.Flags)
	c.OptUint32("delay_boot", &d.DelayBoot)
	if c.Since(codec.V2302) {
		c.Text("extra", &d.Extra)
	} else {
		c.Text("extra", new(model.Text)) // controllers of 22.05 free it twice, and crash
	}
	c.Uint16("x11", &d.X11)
	c.Text("x11_magic_cookie", &d.X11MagicCookie)
	c.Text("x11_target", &d.X11Target)
	c.Uint16("x11_target_port", &d.X11TargetPort)
	tresOf(c, "cpus_per_tres", &d.CPUsPerTRES)
	tresOf(c, "mem_per_tres", &d.MemPerTRES)
	tresOf(c, "tres_bind", &d.TRESBind)
	c.Text("tres_freq", &d.TRESFreq)
	tresOf(c, "tres_per_job", &d.TRESPerJob)
	tresOf(c, "tres_per_node", &d.TRESPerNode)
	tresOf(c, "tres_per_socket", &d.TRESPerSocket)
	tresOf(c, "tres_per_task", &d.TRESPerTask)
	codec.Record(c, "crontab_entry", "cron_entry", &d.Cron, cronEntry)
	if c.Since(codec.V2405) {
		c.OptUint16("segment_size", &d.SegmentSize)
	}
}

// tresOf encodes or decodes trackable resources, such as gres/gpu:2.
func tresOf(c *codec.Codec, name string, v *model.Text) {
	if c.Since(codec.V2311) || c.Storing() {
		c.Text(name, v)
		return
	}
	old := oldTRES(name, *v)
	c.Text(name, &old)
}

// oldTRES returns trackable resources as controllers before 23.11 know them: gres:gpu:2
// and, in tres_bind, gpu:single:1.
func oldTRES(name string, v model.Text) model.Text {
	prefix := "gres:"
	if name == "tres_bind" {
		prefix = ""
	}
	return model.Text(strings.ReplaceAll(string(v), "gres/", prefix))
}

// selectPlugin encodes or decodes the number of a select plugin. In old
// protocols, the plugin's data followed the number. A decoder ignores the
// number. An encoder sends the number of cons_tres: every ordinary build has
// that plugin, and Slurm's commands fail on an unknown number.
func selectPlugin(c *codec.Codec, name string) {
	plugin := uint32(109)
	c.Uint32(name, &plugin)
}

// optID encodes or decodes the number of a user or group. If v is not set, the
// controller uses the number in the credential. "Not set" is NO_VAL at protocol
// 38. From protocol 39 on, it is 99, because controllers refuse NO_VAL.
func optID(c *codec.Codec, name string, v *model.Opt[uint32]) {
	const nobody = 99
	if c.Until(codec.V2302) {
		c.OptUint32(name, v)
		return
	}
	optAs(c, name, v, nobody)
}

// jobID encodes or decodes the number of a job, which is a step id from protocol
// 44 on.
func jobID(c *codec.Codec, job *model.Opt[uint32]) {
	if c.Until(codec.V2511) {
		c.OptUint32("job_id", job)
	} else {
		jobAsStep(c, job)
	}
}

// jobAsStep encodes or decodes the number of a job in the form of a step id
// without a step (table step_id). "Not set" is NO_VAL.
func jobAsStep(c *codec.Codec, job *model.Opt[uint32]) {
	const noJob = 0xfffffffe
	step := model.StepID{JobID: job.Or(noJob)}
	codec.Record(c, "step_id", "step_id", &step, stepID)
	if !c.Storing() {
		return
	}
	*job = model.Some(step.JobID)
	if step.JobID == noJob {
		*job = model.Opt[uint32]{}
	}
}

// cronEntry encodes or decodes the times at which a cron job runs (table
// cron_entry).
func cronEntry(c *codec.Codec, e *model.CronEntry) {
	c.Uint8("set", &e.Set)
	if c.StopIf("set == 0", e.Set == 0) {
		return
	}
	c.Uint32("flags", &e.Flags)
	c.Bitmap("minute", &e.Minute)
	c.Bitmap("hour", &e.Hour)
	c.Bitmap("day_of_month", &e.DayOfMonth)
	c.Bitmap("month", &e.Month)
	c.Bitmap("day_of_week", &e.DayOfWeek)
	c.String("cronspec", &e.Spec)
	c.Uint32("line_start", &e.LineStart)
	c.Uint32("line_end", &e.LineEnd)
}
