package scope

import "encoding/binary"

// An RPC is a type of message to a daemon that a client with one of the scopes
// Needs may have sent in its name.
type RPC struct {
	Number uint16 // of Slurm's RPC; package message has the same numbers
	Needs  Set    // None: every client
	About  string
}

// rpcs are the types of messages that the keeper permits, if it decides about each
// message (package keeper). It stamps no other, and none of type 5039, with which a
// client would get a token of Slurm that can do everything.
//
// A scope that changes jobs also permits the messages that show one of them, because
// those who change jobs need to see what there is to change.
//
// slurmdbd authenticates only the first message of a connection, of type 6500. Both
// its scopes permit this message, so only the worker tells reading from writing, and a
// captured one can keep the connection when the token has ended.
var rpcs = []RPC{
	{1008, None, "ping, also to find out which version a controller speaks"},

	{1021, ComputeRead, "licenses"},
	{2001, ComputeRead, "the configuration"},
	{2003, ComputeRead, "jobs"},
	{2007, ComputeRead, "nodes"},
	{2009, ComputeRead, "partitions"},
	{2021, ComputeRead | ComputeModify | ComputeCancel, "one job"},
	{2022, ComputeRead, "shares"},
	{2024, ComputeRead, "reservations"},
	{2026, ComputeRead, "priorities"},
	{2035, ComputeRead, "statistics; a reset needs cluster.admin"},
	{2039, ComputeRead, "jobs of a user"},
	{2040, ComputeRead, "one node"},
	{2043, ComputeRead, "limits of associations and QOS"},
	{2051, ComputeRead, "the script of a job"},
	{2057, ComputeRead, "states of jobs"},
	{4007, ComputeRead, "resources of a job"},

	{4001, ComputeCreate, "an allocation"},
	{4003, ComputeCreate, "a job"},
	{4012, ComputeCreate, "when a job would start (dry run)"},
	{4014, ComputeCreate, "whether an allocation is ready"},
	{4025, ComputeCreate, "a heterogeneous allocation"},
	{4027, ComputeCreate, "whether it is ready"},
	{4028, ComputeCreate, "a heterogeneous job"},
	{5017, ComputeCreate, "end a job of the user: an allocation for which no client waits any longer"},

	{3001, ComputeModify, "change a job, also so that it ends"},
	{5023, ComputeModify, "requeue a job"},

	{5032, ComputeCancel, "cancel a job, or send it a signal"},
	{5041, ComputeCancel, "cancel jobs"},

	{1003, ClusterAdmin, "reconfigure"},
	{3002, ClusterAdmin, "change a node"},
	{3003, ClusterAdmin, "create a partition"},
	{3004, ClusterAdmin, "delete a partition"},
	{3005, ClusterAdmin, "change a partition"},
	{3006, ClusterAdmin, "create a reservation"},
	{3008, ClusterAdmin, "delete a reservation"},
	{3009, ClusterAdmin, "change a reservation"},
	{3014, ClusterAdmin, "delete a node"},
	{3015, ClusterAdmin, "create a node"},

	{PersistInit, SlurmdbRead | SlurmdbWrite, "a connection to slurmdbd"},
}

// PersistInit is the type of the first message on a connection to slurmdbd.
const PersistInit = 6500

const (
	stats      = 2035
	statsReset = 0 // first field of the body: reset the statistics
)

// PermitRPC reports whether a client with the scopes s may have sent the message with
// this number, whose body begins with the given bytes.
func (s Set) PermitRPC(number uint16, body []byte) bool {
	for _, r := range rpcs {
		if r.Number == number {
			if number == stats && (len(body) < 2 || binary.BigEndian.Uint16(body) == statsReset) {
				return s&ClusterAdmin != 0
			}
			return r.Needs == None || s&r.Needs != 0
		}
	}
	return false
}
