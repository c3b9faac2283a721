package api

import (
	"schedrestd/api/schema"
	"schedrestd/model"
)

// Ping is how one controller answered.
var Ping = schema.Object("controller_ping",
	schema.F("hostname", schema.String, func(p *model.Ping) *string { return &p.Hostname }, "Name of the machine"),
	schema.Show("pinged", schema.String, upOrDown, "UP when it answered, else DOWN", schema.Deprecated(V42)),
	schema.F("responding", schema.Boolean, func(p *model.Ping) *bool { return &p.Responding }, "Whether it answered", schema.Required(0), schema.Since(V42)),
	schema.F("latency", schema.Int64, func(p *model.Ping) *int64 { return &p.Latency }, "Time it took to answer", schema.Unit("µs")),
	schema.F("mode", schema.String, func(p *model.Ping) *string { return &p.Mode }, "primary, or backup with its number", schema.Deprecated(V42)),
	schema.F("primary", schema.Boolean, func(p *model.Ping) *bool { return &p.Primary }, "Whether it is the first controller, not a backup", schema.Required(0), schema.Since(V42)),
)

// AccountingPing is how the accounting daemon answered: as Ping, but all that is in it
// is promised, and what is deprecated there is not here.
var AccountingPing = schema.Object("slurmdbd_ping",
	schema.F("hostname", schema.String, func(p *model.Ping) *string { return &p.Hostname }, "Name of the machine", schema.Required(0)),
	schema.Show("pinged", schema.String, upOrDown, "UP when it answered, else DOWN", schema.Until(V42)),
	schema.F("responding", schema.Boolean, func(p *model.Ping) *bool { return &p.Responding }, "Whether it answered", schema.Required(0), schema.Since(V42)),
	schema.F("latency", schema.Int64, func(p *model.Ping) *int64 { return &p.Latency }, "Time it took to answer", schema.Unit("µs"), schema.Required(0)),
	schema.F("mode", schema.String, func(p *model.Ping) *string { return &p.Mode }, "primary, or backup with its number", schema.Until(V42)),
	schema.F("primary", schema.Boolean, func(p *model.Ping) *bool { return &p.Primary }, "Whether it is the first daemon, not a backup", schema.Required(0), schema.Since(V42)),
)

func upOrDown(p *model.Ping) string {
	if p.Responding {
		return "UP"
	}
	return "DOWN"
}
