package api

import (
	"errors"
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// The functions below declare the statistics of two kinds of RPCs: those that
// the controller received, and those that it has yet to send to nodes. In
// v0.0.40, the schemas of these objects have no names and no required fields,
// and all numbers are plain integers.

func rpcList[T any](name string, row *schema.ObjectType[T]) func() schema.Type[[]T] {
	return schema.Named(name, schema.List(func() schema.Type[T] {
		return shaped[T]{row, func(v schema.View) *schema.Shape {
			s := row.Shape(v)
			if v.Version < V41 {
				s.Name = ""
			}
			return s
		}}
	}))
}

// rpcNumber returns two fields: the number of a message type, and its name.
func rpcNumber[O any, T schema.Integer](at func(*O) *T) schema.Fields[O] {
	return schema.Fields[O]{
		schema.F("type_id", schema.Int32, at, "Number of the message type", schema.Bare, schema.Required(V41)),
		schema.Show("message_type", schema.String, func(o *O) string { return messageName(uint32(*at(o))) }, "Name of the message type, or its number if it has none", schema.Required(V41)),
	}
}

// rpcTimes returns fields for the number of requests, and for their total and
// average duration.
func rpcTimes[O any](count func(*O) *uint32, total func(*O) *uint64) schema.Fields[O] {
	average := func(o *O) uint64 { return mean(*total(o), *count(o)) }
	return schema.Fields[O]{
		schema.F("count", schema.Int64, count, "Number of requests", schema.Count, schema.Until(V41)),
		schema.F("count", schema.Int32, count, "Number of requests", schema.Count, schema.Since(V41), schema.Required(0)),
		schema.F("total_time", schema.Int64, total, "Total duration of the requests", schema.Unit("µs"), schema.Required(V41)),
		schema.Show("average_time", schema.Int64, average, "Average duration of a request", schema.Unit("µs"), schema.Until(V41)),
		schema.Show("average_time", number, func(o *O) model.Opt[uint64] {
			if *count(o) == 0 || *total(o) == 0 {
				return model.Opt[uint64]{}
			}
			return model.Some(average(o))
		}, "Average duration of a request", schema.Unit("µs"), schema.Since(V41), schema.Required(0)),
	}
}

var rpcType = schema.Object("stats_msg_rpc_type", func() schema.Fields[model.RPCTypeStats] {
	return append(append(
		rpcNumber(func(r *model.RPCTypeStats) *uint16 { return &r.Type }),
		rpcTimes(
			func(r *model.RPCTypeStats) *uint32 { return &r.Count },
			func(r *model.RPCTypeStats) *uint64 { return &r.Time },
		)...),
		schema.F("queued", schema.Int32, func(r *model.RPCTypeStats) *uint16 { return &r.Queued }, "Number of waiting requests", schema.Count, schema.Since(V41), schema.Required(0)),
		schema.F("dropped", schema.Int64, func(r *model.RPCTypeStats) *uint64 { return &r.Dropped }, "Number of rejected requests", schema.Count, schema.Since(V41), schema.Required(0)),
		schema.F("cycle_last", schema.Int32, func(r *model.RPCTypeStats) *uint16 { return &r.CycleLast }, "Number of requests served in the last cycle of the queue", schema.Count, schema.Since(V41), schema.Required(0)),
		schema.F("cycle_max", schema.Int32, func(r *model.RPCTypeStats) *uint16 { return &r.CycleMax }, "Maximum number of requests served in one cycle", schema.Count, schema.Since(V41), schema.Required(0)),
	)
})

// rpcUserRow contains a user's name and the statistics of this user's requests.
type rpcUserRow struct {
	name string
	*model.RPCUserStats
}

var rpcUser = schema.Object("stats_msg_rpc_user", func() schema.Fields[rpcUserRow] {
	return append(schema.Fields[rpcUserRow]{
		schema.F("user_id", schema.Int32, func(r *rpcUserRow) *uint32 { return &r.UserID }, "Number of the user", schema.Bare, schema.Required(V41)),
		schema.F("user", schema.String, func(r *rpcUserRow) *string { return &r.name }, "Name of the user", schema.Required(V41)),
	}, rpcTimes(func(r *rpcUserRow) *uint32 { return &r.Count }, func(r *rpcUserRow) *uint64 { return &r.Time })...)
})

func rpcUsers(s *ControllerStatsRow) []rpcUserRow {
	list := make([]rpcUserRow, len(s.RPCUsers))
	for i := range s.RPCUsers {
		list[i] = rpcUserRow{userName(s.Users, s.RPCUsers[i].UserID), &s.RPCUsers[i]}
	}
	return list
}

var rpcQueue = schema.Object("stats_msg_rpc_queue", func() schema.Fields[model.PendingRPCs] {
	return append(
		rpcNumber(func(p *model.PendingRPCs) *uint32 { return &p.Type }),
		schema.F("count", schema.Int32, func(p *model.PendingRPCs) *uint32 { return &p.Count }, "Number of waiting messages", schema.Count, schema.Required(0)),
	)
})

var rpcDump = schema.Object("stats_msg_rpc_dump", func() schema.Fields[model.PendingHosts] {
	return append(
		rpcNumber(func(p *model.PendingHosts) *uint32 { return &p.Type }),
		schema.Show("count", schema.Named("hostlist_string", schema.StreamOf(schema.String)), pendingHosts, "Names of the nodes to which these messages are to be sent; not a number, despite the name", schema.Required(0)),
	)
})

// maxPendingHosts is the maximum number of names to which one host list may
// expand. Without a limit, a few bytes could expand to billions of names.
const maxPendingHosts = 200_000

func pendingHosts(p *model.PendingHosts) schema.Stream[string] {
	return func(each func(*string) error) error {
		count := 0
		for host := range model.Hosts(p.Hosts) {
			if count++; count > maxPendingHosts {
				return errors.New("a pending message has too many destination nodes")
			}
			if err := each(&host); err != nil {
				return err
			}
		}
		return nil
	}
}

// DiagAnswer is an answer with the controller's statistics.
type DiagAnswer struct {
	Stats ControllerStatsRow
	Envelope
}

// Diag declares the fields of a DiagAnswer.
var Diag = enveloped("openapi_diag_resp", func(a *DiagAnswer) *Envelope { return &a.Envelope },
	schema.F("statistics", ControllerStats.Type, func(a *DiagAnswer) *ControllerStatsRow { return &a.Stats }, "Statistics of the controller", schema.Required(0)),
)

// GetDiag shows the controller's statistics.
var GetDiag = declare(scope.ComputeRead, noParams, Endpoint{
	Method: http.MethodGet, Path: "diag/", ID: "get_diag", NoFields: true,
	Doc: "Show statistics of the controller", Answer: Diag,
	Description: "Returns statistics since the controller last reset them: runs and durations of the schedulers, numbers of jobs by result, and numbers of requests by type and by user.",
	AnswerDoc:   "Statistics of the controller",
})
