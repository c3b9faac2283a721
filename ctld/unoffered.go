package ctld

import (
	"context"

	"schedrestd/errs"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// unoffered lists requests of Slurm's commands that this controller does not
// support. They are refused with the number for "not supported". Slurm's
// commands take the refusal of an unknown message for a network fault, and some
// of them retry.
var unoffered = map[message.Type]string{
	1003: "reconfiguration", // REQUEST_RECONFIGURE, and so on
	1005: "an end by request",
	1009: "an end by request",
	1010: "another level of the log",
	1012: "a backup",
	1013: "another level of the log",
	1014: "other flags of the log",
	1015: "reboots of nodes",
	1023: "fair share",
	1025: "power saving",
	1026: "power saving",
	1027: "power saving",

	2001: "a show of its configuration",
	2005: "a list of steps",
	2013: "jobs by their processes",
	2015: "its configuration to fetch",
	2017: "triggers",
	2018: "triggers",
	2019: "triggers",
	2026: "factors of priorities",
	2028: "a topology",
	2030: "triggers",
	2037: "burst buffers",
	2043: "associations",
	2051: "scripts of jobs",
	2055: "burst buffers",
	2200: "crontabs",
	2202: "crontabs",

	3001: "changes of jobs",
	3002: "changes of nodes",
	3003: "changes of partitions",
	3004: "changes of partitions",
	3005: "changes of partitions",
	3006: "reservations",
	3008: "reservations",
	3009: "reservations",
	3014: "changes of nodes",
	3015: "changes of nodes",

	4001: "allocations",
	4012: "forecasts of a job's start",
	4014: "allocations",
	4021: "allocations",
	4022: "notes to jobs",
	4023: "copies to nodes",
	4025: "allocations",
	4027: "allocations",
	4028: "heterogeneous jobs",
	4029: "copies to nodes",

	5001: "steps",
	5005: "steps",
	5007: "steps",
	5014: "suspension",
	5019: "figures of steps",
	5021: "steps",
	5023: "requeuing",
	5035: "jobs by their connections",
	5038: "changes of jobs",
}

// handleUnoffered refuses a known request that this controller does not
// support, without reading its body.
func handleUnoffered(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	return 0, nil, refuse(errs.Unsupported, fault.NotSupported, "this controller does not offer %s", unoffered[r.Type])
}
