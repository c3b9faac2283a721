package ctld

import (
	"context"

	"schedrestd/internal/errs"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// The map unsupported contains the types of requests that Slurm's commands may
// send but this controller does not support. The controller refuses such
// requests with the error number for "not supported". If it refused them as
// unknown messages, Slurm's commands would report a network failure, and some
// would try again.
var unsupported = map[message.Type]string{
	1003: "reconfiguration", // REQUEST_RECONFIGURE; the other types have similar names in Slurm
	1005: "shutdown by request",
	1009: "shutdown by request",
	1010: "changing the log level",
	1012: "backup controllers",
	1013: "changing the log level",
	1014: "debug flags",
	1015: "rebooting nodes",
	1023: "fair share",
	1025: "power saving",
	1026: "power saving",
	1027: "power saving",

	2001: "showing its configuration",
	2005: "listing job steps",
	2013: "looking up jobs by process",
	2017: "triggers",
	2018: "triggers",
	2019: "triggers",
	2028: "topology",
	2030: "triggers",
	2037: "burst buffers",
	2043: "associations",
	2055: "burst buffers",
	2200: "crontabs",
	2202: "crontabs",

	3002: "changing nodes",
	3003: "changing partitions",
	3004: "changing partitions",
	3005: "changing partitions",
	3006: "reservations",
	3008: "reservations",
	3009: "reservations",
	3014: "changing nodes",
	3015: "changing nodes",

	4001: "allocations",
	4014: "allocations",
	4021: "allocations",
	4022: "messages to jobs",
	4023: "copying files to nodes",
	4025: "allocations",
	4027: "allocations",
	4028: "heterogeneous jobs",
	4029: "copying files to nodes",

	5001: "steps",
	5005: "steps",
	5007: "steps",
	5014: "suspending jobs",
	5019: "job step statistics",
	5021: "steps",
	5035: "looking up jobs by connection",
	5038: "changing jobs",
}

// handleUnsupported refuses a request in the map unsupported. It does not read
// the request's body.
func handleUnsupported(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	return 0, nil, refuse(errs.Unsupported, fault.NotSupported, "this controller does not support %s", unsupported[r.Type])
}
