package api

import (
	"schedrestd/api/schema"
	"schedrestd/model"
)

// NodesAnswer is the body of an answer with nodes. LastUpdate counts once Nodes has ended.
type NodesAnswer struct {
	Nodes      schema.Stream[NodeRow]
	LastUpdate model.Time
	Envelope
}

// Nodes is the table of a NodesAnswer.
var Nodes = enveloped("openapi_nodes_resp", func(a *NodesAnswer) *Envelope { return &a.Envelope },
	schema.F("nodes", schema.StreamOf(Node.Type), func(a *NodesAnswer) *schema.Stream[NodeRow] { return &a.Nodes }, "The nodes", schema.Required(0)),
	schema.F("last_update", moment, func(a *NodesAnswer) *model.Time { return &a.LastUpdate }, "When any of this last changed", schema.Unit("s"), schema.Required(0)),
)

// JobsAnswer is the body of an answer with jobs. The times count once Jobs has ended.
type JobsAnswer struct {
	Jobs         schema.Stream[JobRow]
	LastBackfill model.Time
	LastUpdate   model.Time
	Envelope
}

// Jobs is the table of a JobsAnswer.
var Jobs = enveloped("openapi_job_info_resp", func(a *JobsAnswer) *Envelope { return &a.Envelope },
	schema.F("jobs", schema.StreamOf(Job.Type), func(a *JobsAnswer) *schema.Stream[JobRow] { return &a.Jobs }, "The jobs", schema.Required(0)),
	schema.F("last_backfill", moment, func(a *JobsAnswer) *model.Time { return &a.LastBackfill }, "When backfill scheduling last ran", schema.Unit("s"), schema.Required(0)),
	schema.F("last_update", moment, func(a *JobsAnswer) *model.Time { return &a.LastUpdate }, "When any of this last changed", schema.Unit("s"), schema.Required(0)),
)

// PingsAnswer is the body of an answer to a ping.
type PingsAnswer struct {
	Pings []model.Ping
	Envelope
}

func (a *PingsAnswer) envelope() *Envelope  { return &a.Envelope }
func (a *PingsAnswer) pings() *[]model.Ping { return &a.Pings }

// Pings is the table of a PingsAnswer of controllers.
var Pings = enveloped("openapi_ping_array_resp", (*PingsAnswer).envelope,
	schema.F("pings", schema.List(Ping.Type), (*PingsAnswer).pings, "The controllers, the primary one first", schema.Required(0)),
)

// AccountingPings is the table of a PingsAnswer of the accounting daemon.
var AccountingPings = enveloped("openapi_slurmdbd_ping_resp", (*PingsAnswer).envelope,
	schema.F("pings", schema.List(AccountingPing.Type), (*PingsAnswer).pings, "The accounting daemon, and its backup when it has one", schema.Required(0)),
)

// StatsAnswer is the body of an answer with the accounting daemon's statistics.
type StatsAnswer struct {
	Stats StatsRow
	Pings []model.Ping
	Envelope
}

// AccountingDiag is the table of a StatsAnswer.
var AccountingDiag = enveloped("openapi_slurmdbd_stats_resp", func(a *StatsAnswer) *Envelope { return &a.Envelope },
	schema.F("statistics", Stats.Type, func(a *StatsAnswer) *StatsRow { return &a.Stats }, "What the accounting daemon counts", schema.Required(0)),
	schema.F("pings", schema.List(AccountingPing.Type), func(a *StatsAnswer) *[]model.Ping { return &a.Pings }, "The accounting daemon, and its backup when it has one", schema.Ours),
)

// EmptyAnswer is the body of an answer that has nothing but its Envelope: to a change, and to
// every request that failed.
type EmptyAnswer struct{ Envelope }

// Empty is the table of an EmptyAnswer.
var Empty = enveloped("openapi_resp", func(a *EmptyAnswer) *Envelope { return &a.Envelope })
