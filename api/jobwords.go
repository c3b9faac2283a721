package api

import "schedrestd/api/schema"

// The flags and words below occur both in jobs and in job descriptions. They
// have the same numbers as in the RPC.

// jobFlags are the names of a job's flags.
var jobFlags = schema.Words("job_flags",
	flag("KILL_INVALID_DEPENDENCY", 0),
	flag("NO_KILL_INVALID_DEPENDENCY", 1),
	flag("HAS_STATE_DIRECTORY", 2),
	flag("TESTING_BACKFILL", 3),
	flag("GRES_BINDING_ENFORCED", 4),
	flag("TEST_NOW_ONLY", 5),
	flag("SEND_JOB_ENVIRONMENT", 6),
	flag("SPREAD_JOB", 8),
	flag("PREFER_MINIMUM_NODE_COUNT", 9),
	flag("JOB_KILL_HURRY", 10),
	flag("SKIP_TRES_STRING_ACCOUNTING", 11),
	flag("SIBLING_CLUSTER_UPDATE_ONLY", 12),
	flag("HETEROGENEOUS_JOB", 13),
	flag("EXACT_TASK_COUNT_REQUESTED", 14),
	flag("EXACT_CPU_COUNT_REQUESTED", 15),
	flag("TESTING_WHOLE_NODE_BACKFILL", 16),
	flag("TOP_PRIORITY_JOB", 17),
	flag("ACCRUE_COUNT_CLEARED", 18),
	flag("GRES_BINDING_DISABLED", 19),
	flag("JOB_WAS_RUNNING", 20),
	flag("JOB_ACCRUE_TIME_RESET", 21),
	flag("CRON_JOB", 22),
	flag("EXACT_MEMORY_REQUESTED", 23),
	flag("EXTERNAL_JOB", 24, schema.Since(V43)),
	flag("USING_DEFAULT_ACCOUNT", 25),
	flag("USING_DEFAULT_PARTITION", 26),
	flag("USING_DEFAULT_QOS", 27),
	flag("USING_DEFAULT_WCKEY", 28),
	flag("DEPENDENT", 29),
	flag("MAGNETIC", 30),
	flag("PARTITION_ASSIGNED", 31),
	flag("BACKFILL_ATTEMPTED", 32),
	flag("SCHEDULING_ATTEMPTED", 33),
	flag("SAVE_BATCH_SCRIPT", 7, schema.Until(V41)),
	flag("GRES_ONE_TASK_PER_SHARING", 38, schema.Until(V41)),
	flag("GRES_MULTIPLE_TASKS_PER_SHARING", 39, schema.Until(V41)),
	flag("GRES_ALLOW_TASK_SHARING", 40, schema.Until(V41)),
	flag("STEPMGR_ENABLED", 41, schema.Since(V41)),
	flag("SPREAD_SEGMENTS", 43, schema.Since(V44)),
	flag("CONSOLIDATE_SEGMENTS", 44, schema.Since(V44)),
	flag("EXPEDITED_REQUEUE", 45, schema.Since(V44)),
	flag("JOB_IMPLICIT_MAX_NODES", 47, schema.Since(V45)),
	flag("RESET_SPREAD_SEGMENTS", 48, schema.Since(V46)),
	flag("RESET_CONSOLIDATE_SEGMENTS", 49, schema.Since(V46)),
)

func flag(name string, bit uint, opts ...schema.Option) schema.Word[uint64] {
	return schema.Bit(name, uint64(1)<<bit, opts...)
}

// mailTypes are words for the events that are reported to the user by mail.
var mailTypes = schema.Words("job_mail_flags",
	schema.Bit("BEGIN", uint16(1)<<0),
	schema.Bit("END", uint16(1)<<1),
	schema.Bit("FAIL", uint16(1)<<2),
	schema.Bit("REQUEUE", uint16(1)<<3),
	schema.Bit("TIME=100%", uint16(1)<<4),
	schema.Bit("TIME=90%", uint16(1)<<5),
	schema.Bit("TIME=80%", uint16(1)<<6),
	schema.Bit("TIME=50%", uint16(1)<<7),
	schema.Bit("STAGE_OUT", uint16(1)<<8),
	schema.Bit("ARRAY_TASKS", uint16(1)<<9),
	schema.Bit("INVALID_DEPENDENCY", uint16(1)<<10),
)

// profiles are the words for the data that is collected while a job runs.
var profiles = schema.Words("acct_gather_profile",
	schema.Part("NOT_SET", ^uint32(0), 0),
	schema.Part("NONE", ^uint32(0), 1),
	schema.Bit("ENERGY", uint32(1)<<1),
	schema.Bit("LUSTRE", uint32(1)<<3),
	schema.Bit("NETWORK", uint32(1)<<4),
	schema.Bit("TASK", uint32(1)<<2),
)

// sharing is the set of words that describe how a job shares its nodes.
var sharing = schema.Words("job_shared",
	schema.Part("none", ^uint16(0), 0),
	schema.Part("oversubscribe", ^uint16(0), 1),
	schema.Part("user", ^uint16(0), 2),
	schema.Part("mcs", ^uint16(0), 3),
	schema.Part("topo", ^uint16(0), 4, schema.Since(V41)),
)

// exclusiveness is the set of words for the field "exclusive". In versions
// before v0.0.42, this field describes how a job shares its nodes.
var exclusiveness = schema.Words("job_exclusive_flags",
	schema.Part("true", ^uint16(0), 0),
	schema.Part("false", ^uint16(0), 1),
	schema.Part("user", ^uint16(0), 2),
	schema.Part("mcs", ^uint16(0), 3),
	schema.Part("topo", ^uint16(0), 4, schema.Since(V41)),
)

// showFlags are the words with which a client selects the details that the
// controller sends.
var showFlags = schema.Words("job_show_flags",
	schema.Bit("ALL", uint16(1)<<0),
	schema.Bit("DETAIL", uint16(1)<<1),
	schema.Bit("MIXED", uint16(1)<<3),
	schema.Bit("LOCAL", uint16(1)<<4),
	schema.Bit("SIBLING", uint16(1)<<5),
	schema.Bit("FEDERATION", uint16(1)<<6),
	schema.Bit("FUTURE", uint16(1)<<7),
)
