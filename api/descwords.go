package api

import "schedrestd/api/schema"

// The flags below occur in job descriptions, but not in jobs. Their bits are
// the same as in the RPC.

var cpuBindings = schema.Words("cpu_binding_flags",
	schema.Part("CPU_BIND_TO_THREADS", uint16(0x1e), 0x02),
	schema.Part("CPU_BIND_TO_CORES", uint16(0x1e), 0x04),
	schema.Part("CPU_BIND_TO_SOCKETS", uint16(0x1e), 0x08),
	schema.Part("CPU_BIND_TO_LDOMS", uint16(0x1e), 0x10),
	schema.Part("CPU_BIND_NONE", uint16(0xfe0), 0x20),
	schema.Part("CPU_BIND_RANK", uint16(0xfe0), 0x40, schema.Until(V45)),
	schema.Part("CPU_BIND_MAP", uint16(0xfe0), 0x80),
	schema.Part("CPU_BIND_MASK", uint16(0xfe0), 0x100),
	schema.Part("CPU_BIND_LDRANK", uint16(0xfe0), 0x200),
	schema.Part("CPU_BIND_LDMAP", uint16(0xfe0), 0x400),
	schema.Part("CPU_BIND_LDMASK", uint16(0xfe0), 0x800),
	schema.Bit("VERBOSE", uint16(1)),
	schema.Bit("CPU_BIND_ONE_THREAD_PER_CORE", uint16(0x2000)),
)

var memoryBindings = schema.Words("memory_binding_type",
	schema.Part("NONE", uint16(0x3e), 0x02),
	schema.Part("RANK", uint16(0x3e), 0x04),
	schema.Part("MAP", uint16(0x3e), 0x08),
	schema.Part("MASK", uint16(0x3e), 0x10),
	schema.Part("LOCAL", uint16(0x3e), 0x20),
	schema.Bit("VERBOSE", uint16(0x01)),
	schema.Bit("SORT", uint16(0x40), schema.Until(V44)),
	schema.Bit("PREFER", uint16(0x80)),
)

var openModes = schema.Words("open_mode",
	schema.Part("APPEND", uint8(3), 1),
	schema.Part("TRUNCATE", uint8(3), 2),
)

// warnFlags are the flags that select which processes of a job get the warning
// signal. Requests to signal or cancel jobs also use them.
var warnFlags = schema.Words("warn_flags",
	schema.Bit("BATCH_JOB", uint16(1)<<0),
	schema.Bit("ARRAY_TASK", uint16(1)<<1),
	schema.Bit("FULL_STEPS_ONLY", uint16(1)<<2),
	schema.Bit("FULL_JOB", uint16(1)<<3),
	schema.Bit("FEDERATION_REQUEUE", uint16(1)<<4),
	schema.Bit("HURRY", uint16(1)<<5),
	schema.Bit("OUT_OF_MEMORY", uint16(1)<<6),
	schema.Bit("NO_SIBLING_JOBS", uint16(1)<<7),
	schema.Bit("RESERVATION_JOB", uint16(1)<<8),
	schema.Bit("NO_CRON_JOBS", uint16(1)<<9, schema.Until(V41)),
	schema.Bit("VERBOSE", uint16(1)<<11),
	schema.Bit("CRON_JOBS", uint16(1)<<12),
	schema.Bit("WARNING_SENT", uint16(1)<<15),
)

var x11Flags = schema.Words("x11_flags",
	schema.Bit("FORWARD_ALL_NODES", uint16(1)),
	schema.Bit("BATCH_NODE", uint16(2)),
	schema.Bit("FIRST_NODE", uint16(4)),
	schema.Bit("LAST_NODE", uint16(8)),
)
