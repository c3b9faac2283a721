package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// Ping declares the fields of the result of a ping to a controller.
var Ping = schema.Object("controller_ping", func() schema.Fields[model.Ping] {
	return schema.Fields[model.Ping]{
		schema.F("hostname", schema.String, func(p *model.Ping) *string { return &p.Hostname }, "Name of the machine"),
		schema.Show("pinged", schema.String, upOrDown, "UP if the daemon answered, otherwise DOWN", schema.Deprecated(V42), schema.Until(V45)),
		schema.F("responding", schema.Boolean, func(p *model.Ping) *bool { return &p.Responding }, "Whether the daemon answered", schema.Required(0), schema.Since(V42)),
		schema.F("latency", schema.Int64, func(p *model.Ping) *int64 { return &p.Latency }, "Time until the daemon answered", schema.Unit("µs")),
		schema.F("mode", schema.String, func(p *model.Ping) *string { return &p.Mode }, "Role of the daemon: primary, or backup with its number", schema.Deprecated(V42), schema.Until(V45)),
		schema.F("primary", schema.Boolean, func(p *model.Ping) *bool { return &p.Primary }, "Whether this is the primary controller, not a backup", schema.Required(0), schema.Since(V42)),
		schema.Show("status", schema.String, pingStatus, "Reason why the daemon did not answer", schema.Since(V45)),
	}
})

// AccountingPing declares the fields of the result of a ping to the accounting
// daemon. Unlike Ping, it has no deprecated fields. All fields are required
// from v0.0.42 on.
var AccountingPing = schema.Object("slurmdbd_ping", func() schema.Fields[model.Ping] {
	return schema.Fields[model.Ping]{
		schema.F("hostname", schema.String, func(p *model.Ping) *string { return &p.Hostname }, "Name of the machine", schema.Required(0)),
		schema.Show("pinged", schema.String, upOrDown, "UP if the daemon answered, otherwise DOWN", schema.Until(V42)),
		schema.F("responding", schema.Boolean, func(p *model.Ping) *bool { return &p.Responding }, "Whether the daemon answered", schema.Required(0), schema.Since(V42)),
		schema.F("latency", schema.Int64, func(p *model.Ping) *int64 { return &p.Latency }, "Time until the daemon answered", schema.Unit("µs"), schema.Required(0)),
		schema.F("mode", schema.String, func(p *model.Ping) *string { return &p.Mode }, "Role of the daemon: primary, or backup with its number", schema.Until(V42)),
		schema.F("primary", schema.Boolean, func(p *model.Ping) *bool { return &p.Primary }, "Whether this is the primary daemon, not a backup", schema.Required(0), schema.Since(V42)),
		schema.Show("status", schema.String, pingStatus, "Reason why the daemon did not answer", schema.Required(0), schema.Since(V45)),
	}
})

func upOrDown(p *model.Ping) string {
	if p.Responding {
		return "UP"
	}
	return "DOWN"
}

// pingStatus returns the reason why a daemon did not answer. If the daemon
// answered, pingStatus returns "No error", as slurmrestd does.
func pingStatus(p *model.Ping) string {
	switch {
	case p.Responding:
		return "No error"
	case p.TimedOut:
		return "Timed out"
	}
	return "Connection failed"
}

// PingsAnswer is an answer to a ping.
type PingsAnswer struct {
	Pings []model.Ping
	Envelope
}

func (a *PingsAnswer) envelope() *Envelope  { return &a.Envelope }
func (a *PingsAnswer) pings() *[]model.Ping { return &a.Pings }

// Pings declares the fields of a PingsAnswer about controllers.
var Pings = enveloped("openapi_ping_array_resp", (*PingsAnswer).envelope,
	schema.F("pings", schema.Named("controller_ping_array", schema.List(Ping.Type)), (*PingsAnswer).pings, "The controllers, the primary one first", schema.Required(0)),
)

var GetPing = declare(scope.ComputeRead, noParams, Endpoint{
	Method: http.MethodGet, Path: "ping/", ID: "get_ping", NoFields: true,
	Doc: "Ping all controllers", Answer: Pings,
	Description: "Pings each of the cluster's controllers. A controller that does not answer is listed as down; the request itself still succeeds.",
	AnswerDoc:   "The controllers and whether they answered",
})

// AccountingPings declares the fields of a PingsAnswer about the accounting
// daemon.
var AccountingPings = enveloped("openapi_slurmdbd_ping_resp", (*PingsAnswer).envelope,
	schema.F("pings", schema.Named("slurmdbd_ping_array", schema.List(AccountingPing.Type)), (*PingsAnswer).pings, "The accounting daemon, and its backup, if there is one", schema.Required(0)),
)

var GetAccountingPing = declare(scope.SlurmdbRead, noParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "ping/", ID: "get_ping", NoFields: true,
	Doc: "Ping the accounting daemon", Answer: AccountingPings,
	Description: "Pings the accounting daemon and, if there is one, its backup. A daemon that does not answer is listed as down; the request itself still succeeds.",
	AnswerDoc:   "The accounting daemons and whether they answered",
	SlurmSince:  V42,
})
