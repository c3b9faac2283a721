package api

import "schedrestd/api/schema"

var acctStorageEnforceWords = schema.Words("acct_storage_enforce",
	schema.Bit("associations", uint64(0x1)),
	schema.Bit("limits", uint64(0x2)),
	schema.Bit("wckeys", uint64(0x4)),
	schema.Bit("qos", uint64(0x8)),
	schema.Bit("safe", uint64(0x10)),
	schema.Bit("nojobs", uint64(0x20)),
	schema.Bit("nosteps", uint64(0x40)),
)

var confFlagsWords = schema.Words("conf_flags",
	schema.Bit("DisableRootJobs", uint64(0x4)),
	schema.Bit("AllowSpecResourcesUsage", uint64(0x8)),
	schema.Bit("UsePam", uint64(0x10)),
	schema.Bit("TrackWCKey", uint64(0x20)),
)

var confFlagsAccountingStoreWords = schema.Words("conf_flags_accounting_store",
	schema.Bit("job_comment", uint64(0x2)),
	schema.Bit("job_extra", uint64(0x100)),
	schema.Bit("job_script", uint64(0x200)),
	schema.Bit("job_env", uint64(0x400)),
	schema.Bit("no_stdio", uint64(0x10000)),
)

var confFlagsCommunicationParametersWords = schema.Words("conf_flags_communication_parameters",
	schema.Bit("IPv4", uint64(0x40)),
	schema.Bit("IPv6", uint64(0x80)),
	schema.Bit("disable_http", uint64(0x20000)),
)

var confFlagsSlurmdParametersWords = schema.Words("conf_flags_slurmd_parameters",
	schema.Bit("config_overrides", uint64(0x1)),
	schema.Bit("l3cache_as_socket", uint64(0x800)),
	schema.Bit("numa_node_as_socket", uint64(0x1000)),
	schema.Bit("allow_ecores", uint64(0x2000)),
	schema.Bit("shutdown_on_reboot", uint64(0x4000)),
	schema.Bit("contain_spank", uint64(0x8000)),
)

var cpuFreqGovsWords = schema.Words("cpu_freq_govs",
	schema.Part("Unset", uint64(0xffffffff), 0xfffffffe),
	schema.Part("Conservative", uint64(0xffffffff), 0x88000000),
	schema.Part("OnDemand", uint64(0xffffffff), 0x84000000),
	schema.Part("Performance", uint64(0xffffffff), 0x82000000),
	schema.Part("PowerSave", uint64(0xffffffff), 0x81000000),
	schema.Part("SchedUtil", uint64(0xffffffff), 0x80400000),
	schema.Part("UserSpace", uint64(0xffffffff), 0x80800000),
	schema.Part("Low", uint64(0xffffffff), 0x80000001),
	schema.Part("Medium", uint64(0xffffffff), 0x80000002),
	schema.Part("Highm1", uint64(0xffffffff), 0x80000004),
	schema.Part("High", uint64(0xffffffff), 0x80000003),
)

var debugFlagsWords = schema.Words("debug_flags",
	schema.Bit("Accrue", uint64(0x4000000000000)),
	schema.Bit("Agent", uint64(0x10000000000000)),
	schema.Bit("AuditRPCs", uint64(0x2000000)),
	schema.Bit("AuditTLS", uint64(0x8000)),
	schema.Bit("Backfill", uint64(0x1000)),
	schema.Bit("BackfillMap", uint64(0x8000000)),
	schema.Bit("BurstBuffer", uint64(0x10000000000)),
	schema.Bit("Cgroup", uint64(0x80000000000000)),
	schema.Bit("ConMgr", uint64(0x200)),
	schema.Bit("CpuFrequency", uint64(0x20000000000)),
	schema.Bit("CPU_Bind", uint64(0x8)),
	schema.Bit("Data", uint64(0x100)),
	schema.Bit("DBD_Agent", uint64(0x8000000000000)),
	schema.Bit("DB_Archive", uint64(0x100000000000)),
	schema.Bit("DB_Assoc", uint64(0x40000000)),
	schema.Bit("DB_Event", uint64(0x80000000)),
	schema.Bit("DB_Job", uint64(0x100000000)),
	schema.Bit("DB_QOS", uint64(0x200000000)),
	schema.Bit("DB_Query", uint64(0x400000000)),
	schema.Bit("DB_Reservation", uint64(0x800000000)),
	schema.Bit("DB_Resource", uint64(0x1000000000)),
	schema.Bit("DB_Step", uint64(0x2000000000)),
	schema.Bit("DB_TRES", uint64(0x200000000000)),
	schema.Bit("DB_Usage", uint64(0x4000000000)),
	schema.Bit("DB_WCKey", uint64(0x8000000000)),
	schema.Bit("Dependency", uint64(0x20000000000000)),
	schema.Bit("Energy", uint64(0x40000)),
	schema.Bit("Federation", uint64(0x1000000000000)),
	schema.Bit("Gang", uint64(0x2000)),
	schema.Bit("GLOB_SILENCE", uint64(0x800000)),
	schema.Bit("Gres", uint64(0x40)),
	schema.Bit("Hetjob", uint64(0x2000000000000)),
	schema.Bit("Interconnect", uint64(0x400000)),
	schema.Bit("JobAccountGather", uint64(0x40000000000000)),
	schema.Bit("JobComp", uint64(0x400000000000)),
	schema.Bit("Namespace", uint64(0x1000000)),
	schema.Bit("NodeFeatures", uint64(0x800000000000)),
	schema.Bit("License", uint64(0x100000)),
	schema.Bit("Metrics", uint64(0x200000000000000)),
	schema.Bit("MPI", uint64(0x80)),
	schema.Bit("Network", uint64(0x400)),
	schema.Bit("NetworkRaw", uint64(0x10)),
	schema.Bit("NO_CONF_HASH", uint64(0x20)),
	schema.Bit("Power", uint64(0x40000000000)),
	schema.Bit("Priority", uint64(0x800)),
	schema.Bit("Profile", uint64(0x200000)),
	schema.Bit("Protocol", uint64(0x4000000)),
	schema.Bit("Reservation", uint64(0x4000)),
	schema.Bit("Route", uint64(0x20000000)),
	schema.Bit("Sack", uint64(0x10000)),
	schema.Bit("Script", uint64(0x100000000000000)),
	schema.Bit("SelectType", uint64(0x1)),
	schema.Bit("Steps", uint64(0x2)),
	schema.Bit("Switch", uint64(0x20000)),
	schema.Bit("thread", uint64(0x80000000000)),
	schema.Bit("TLS", uint64(0x80000)),
	schema.Bit("TraceJobs", uint64(0x10000000)),
	schema.Bit("Triggers", uint64(0x4)),
)

var enforcePartLimitsWords = schema.Words("enforce_part_limits",
	schema.Part("NO", uint64(0xffff), 0x0),
	schema.Part("ANY", uint64(0xffff), 0x2),
	schema.Part("ALL", uint64(0xffff), 0x1),
)

var healthCheckNodeStateWords = schema.Words("health_check_node_state",
	schema.Part("START_ONLY", uint64(0x6ff), 0x200),
	schema.Part("REBOOT_ONLY", uint64(0x6ff), 0x400),
	schema.Bit("ANY", confAnyState),
	schema.Bit("IDLE", uint64(0x1)),
	schema.Bit("ALLOC", uint64(0x2)),
	schema.Bit("MIXED", uint64(0x4)),
	schema.Bit("NONDRAINED_IDLE", uint64(0x8)),
	schema.Bit("CYCLE", uint64(0x100)),
)

var priorityFlagsWords = schema.Words("priority_flags",
	schema.Bit("ACCRUE_ALWAYS", uint64(0x1)),
	schema.Bit("SMALL_RELATIVE_TO_TIME", uint64(0x4)),
	schema.Bit("CALCULATE_RUNNING", uint64(0x10)),
	schema.Bit("DEPTH_OBLIVIOUS", uint64(0x8)),
	schema.Bit("FAIR_TREE", uint64(0x20)),
	schema.Bit("INCR_ONLY", uint64(0x40)),
	schema.Bit("MAX_TRES", uint64(0x2)),
	schema.Bit("MAX_TRES_GRES", uint64(0x800)),
	schema.Bit("NO_NORMAL_ASSOC", uint64(0x80)),
	schema.Bit("NO_NORMAL_PART", uint64(0x100)),
	schema.Bit("NO_NORMAL_QOS", uint64(0x200)),
	schema.Bit("NO_NORMAL_TRES", uint64(0x400)),
)

var privateDataWords = schema.Words("private_data",
	schema.Bit("accounts", uint64(0x20)),
	schema.Bit("events", uint64(0x100)),
	schema.Bit("jobs", uint64(0x1)),
	schema.Bit("nodes", uint64(0x2)),
	schema.Bit("partitions", uint64(0x4)),
	schema.Bit("reservations", uint64(0x40)),
	schema.Bit("usage", uint64(0x8)),
	schema.Bit("users", uint64(0x10)),
)

var prologFlagsWords = schema.Words("prolog_flags",
	schema.Bit("Alloc", uint64(0x1)),
	schema.Bit("NoHold", uint64(0x2)),
	schema.Bit("Contain", uint64(0x4)),
	schema.Bit("Serial", uint64(0x8)),
	schema.Bit("X11", uint64(0x10)),
	schema.Bit("DeferBatch", uint64(0x20)),
	schema.Bit("ForceRequeueOnFail", uint64(0x40)),
	schema.Bit("RunInJob", uint64(0x80)),
)

var reconfigFlagsWords = schema.Words("reconfig_flags",
	schema.Bit("KeepPartInfo", uint64(0x1)),
	schema.Bit("KeepPartState", uint64(0x2)),
	schema.Bit("KeepPowerSaveSettings", uint64(0x4)),
)

var slurmConfPreemptModesWords = schema.Words("slurm_conf_preempt_modes",
	schema.Part("DISABLED", uint64(1<<64-1), 0x0),
	schema.Bit("SUSPEND", uint64(0x1)),
	schema.Bit("REQUEUE", uint64(0x2)),
	schema.Bit("CANCEL", uint64(0x8)),
	schema.Bit("GANG", uint64(0x8000)),
	schema.Bit("WITHIN", uint64(0x4000)),
	schema.Bit("PRIORITY", uint64(0x2000)),
)

var taskPluginParamFlagsWords = schema.Words("task_plugin_param_flags",
	schema.Part("None", uint64(0xfe0), 0x20),
	schema.Part("Threads", uint64(0x1e), 0x2),
	schema.Part("Cores", uint64(0x1e), 0x4),
	schema.Part("Sockets", uint64(0x1e), 0x8),
	schema.Part("autobind=threads", uint64(0x34000), 0x4000),
	schema.Part("autobind=cores", uint64(0x34000), 0x10000),
	schema.Part("autobind=sockets", uint64(0x34000), 0x20000),
	schema.Bit("Verbose", uint64(0x1)),
	schema.Bit("SlurmdOffSpec", uint64(0x40000)),
	schema.Bit("OOMKillStep", uint64(0x100000)),
	schema.Bit("SlurmdSpecOverride", uint64(0x200000)),
)

var cpuFreqGovsNames = map[uint64]string{
	0x88000000: "Conservative",
	0x84000000: "OnDemand",
	0x82000000: "Performance",
	0x81000000: "PowerSave",
	0x80400000: "SchedUtil",
	0x80800000: "UserSpace",
	0x80000001: "Low",
	0x80000002: "Medium",
	0x80000004: "Highm1",
	0x80000003: "High",
}

var logLevels = singleWords{
	{0x0, "quiet", 0},
	{0x1, "fatal", 0},
	{0x2, "error", 0},
	{0x3, "info", 0},
	{0x4, "verbose", 0},
	{0x5, "debug", 0},
	{0x6, "debug2", 0},
	{0x7, "debug3", 0},
	{0x8, "debug4", 0},
	{0x9, "debug5", 0},
	{0xa, "default", V46},
}

var logTimeFormats = singleWords{
	{0x0, "iso8601_ms", 0},
	{0x1, "iso8601", 0},
	{0x2, "rfc5424_ms", 0},
	{0x3, "rfc5424", 0},
	{0x7, "rfc3339", 0},
	{0x4, "clock", 0},
	{0x5, "short", 0},
	{0x6, "thread_id", 0},
	{0x8, "omit", V46},
}

var priorityResetPeriods = singleWords{
	{0x0, "NONE", 0},
	{0x1, "NOW", 0},
	{0x2, "DAILY", 0},
	{0x3, "WEEKLY", 0},
	{0x4, "MONTHLY", 0},
	{0x5, "QUARTERLY", 0},
	{0x6, "YEARLY", 0},
}

var propagatePrioProcesses = singleWords{
	{0x0, "off", 0},
	{0x1, "on", 0},
	{0x2, "nicer", 0},
}

var returnToService = singleWords{
	{0x0, "none", 0},
	{0x1, "non_responsive_only", 0},
	{0x2, "all", 0},
}

// singleWords is a table with the words for the values of a setting.
type singleWords []struct {
	value uint64
	word  string
	since schema.Version // first version that has the word; 0 for all
}

// Type returns the type of a number that is shown as its word. A number without
// a word is shown as an empty string.
func (s singleWords) Type() schema.Type[uint64] { return s }

// Shape describes the word.
func (singleWords) Shape(schema.View) *schema.Shape { return &schema.Shape{Kind: "string"} }

// Renderer returns a function that writes the word of a number.
func (s singleWords) Renderer(v schema.View) func(schema.Encoder, *uint64) {
	return func(e schema.Encoder, n *uint64) {
		for _, w := range s {
			if w.value == *n && w.since <= v.Version {
				e.String(w.word)
				return
			}
		}
		e.String("")
	}
}

// Parser returns a function that refuses every value, because no request sets
// such a word.
func (singleWords) Parser(schema.View) func(*schema.Report, *schema.Value, *uint64) bool {
	return schema.Refuse[uint64]
}
