package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// StatsRow contains the accounting daemon's statistics and a Users value that
// translates the user ids in them to names.
type StatsRow struct {
	*model.AccountingStats
	Users Users
}

// Stats declares the fields of the statistics that the accounting daemon keeps
// about itself.
var Stats = schema.Object("stats_rec", func() schema.Fields[StatsRow] {
	return schema.Fields[StatsRow]{
		schema.F("time_start", seconds, func(s *StatsRow) *model.Time { return &s.TimeStart }, "Start of the counting period", schema.Unit(UnixTime)),
		schema.Show("rollups", schema.Named("rollup_stats", schema.List(oldRollup.Type)), oldRollups, "Usage roll-ups: their times and durations", schema.Until(V41)),
		schema.F("rollups", rollup.Type, func(s *StatsRow) *model.Rollup { return &s.Rollup }, "Usage roll-ups: their times and durations", schema.Since(V41)),
		schema.Show("RPCs", schema.Named("stats_rpc_list", schema.List(rpcCount.Type)), func(s *StatsRow) []model.CallCount { return s.RPCs }, "Requests, by kind"),
		schema.Show("users", schema.Named("stats_user_list", schema.List(userCount.Type)), userCounts, "Requests, by user"),
	}
})

// period returns a function that returns the statistics of the hourly (i = 0),
// daily (1) or monthly (2) roll-ups. If the daemon did not send them, the
// function returns zeros.
func period(i int) func(*model.Rollup) *model.RollupPeriod {
	return func(r *model.Rollup) *model.RollupPeriod {
		if i < len(r.Periods) {
			return &r.Periods[i]
		}
		return new(model.RollupPeriod)
	}
}

var rollup = schema.Object("rollup_stats", func() schema.Fields[model.Rollup] {
	return schema.Fields[model.Rollup]{
		schema.F("hourly", rollupPeriod.Type, period(0), "Hourly roll-ups"),
		schema.F("daily", rollupPeriod.Type, period(1), "Daily roll-ups"),
		schema.F("monthly", rollupPeriod.Type, period(2), "Monthly roll-ups"),
	}
})

var rollupPeriod = schema.Object("", func() schema.Fields[model.RollupPeriod] {
	return schema.Fields[model.RollupPeriod]{
		schema.F("count", schema.Int32, func(p *model.RollupPeriod) *uint16 { return &p.Count }, "Number of roll-ups", schema.Count),
		schema.F("last_run", seconds, func(p *model.RollupPeriod) *model.Time { return &p.LastRun }, "Time of the last roll-up", schema.Unit(UnixTime)),
		schema.Group("duration", "Durations of the roll-ups", schema.Fields[model.RollupPeriod]{
			schema.F("last", schema.Int64, func(p *model.RollupPeriod) *uint64 { return &p.TimeLast }, "Duration of the last roll-up", schema.Unit("µs")),
			schema.F("max", schema.Int64, func(p *model.RollupPeriod) *uint64 { return &p.TimeMax }, "Duration of the longest roll-up", schema.Unit("µs")),
			schema.F("time", schema.Int64, func(p *model.RollupPeriod) *uint64 { return &p.TimeTotal }, "Total duration of all roll-ups", schema.Unit("µs")),
		}),
	}
})

// oldPeriod is a roll-up period as v0.0.40 shows it. Its kind is that version's
// word for an hourly, daily or monthly period.
type oldPeriod struct {
	kind string
	*model.RollupPeriod
}

// oldRollup declares the fields of an oldPeriod. In the documents of v0.0.40,
// the field for the time of the last run is called "last run". slurmrestd sends
// "last_run" instead, and also sends "last_cycle". Our answers contain all
// three fields.
var oldRollup = schema.Object("", func() schema.Fields[oldPeriod] {
	return schema.Fields[oldPeriod]{
		schema.Show("type", oldPeriodKind, func(p *oldPeriod) string { return p.kind }, "Type of period: internal is hourly, user daily, unknown monthly"),
		schema.F("last run", schema.Int32, func(p *oldPeriod) *model.Time { return &p.LastRun }, "Time of the last roll-up", schema.Unit(UnixTime)),
		schema.F("last_run", seconds, func(p *oldPeriod) *model.Time { return &p.LastRun }, "Time of the last roll-up", schema.Unit(UnixTime), schema.Extension),
		schema.F("last_cycle", schema.Int64, func(p *oldPeriod) *uint64 { return &p.TimeLast }, "Duration of the last roll-up", schema.Unit("µs"), schema.Extension),
		schema.F("max_cycle", schema.Int64, func(p *oldPeriod) *uint64 { return &p.TimeMax }, "Duration of the longest roll-up", schema.Unit("µs")),
		schema.F("total_time", schema.Int64, func(p *oldPeriod) *uint64 { return &p.TimeTotal }, "Total duration of all roll-ups", schema.Unit("µs")),
		schema.Show("total_cycles", schema.Int64, func(p *oldPeriod) uint16 { return p.Count }, "Number of roll-ups", schema.Count),
		schema.Show("mean_cycles", schema.Int64, func(p *oldPeriod) uint64 { return p.TimeTotal / max(1, uint64(p.Count)) }, "Average duration of a roll-up", schema.Unit("µs")),
	}
})

func oldPeriodKind() schema.Type[string] {
	kinds := &schema.Shape{Kind: "string", Enum: []string{"internal", "user", "unknown"}}
	return schema.Simple(kinds, func(e schema.Encoder, s *string) { e.String(*s) }, nil)
}

// oldRollups returns the roll-up periods in the form of v0.0.40. It omits
// periods whose roll-ups have not run.
func oldRollups(s *StatsRow) []oldPeriod {
	var list []oldPeriod
	for i, kind := range []string{"internal", "user", "unknown"} {
		if p := period(i)(&s.Rollup); p.TimeTotal > 0 {
			list = append(list, oldPeriod{kind, p})
		}
	}
	return list
}

var rpcCount = schema.Object("stats_rpc", func() schema.Fields[model.CallCount] {
	return schema.Fields[model.CallCount]{
		schema.Show("rpc", schema.String, func(c *model.CallCount) string { return requestName(c.ID) }, "Name of the request"),
		schema.F("count", schema.Int32, func(c *model.CallCount) *uint32 { return &c.Count }, "Number of requests", schema.Count),
		schema.Group("time", "Durations of the requests", callTimes()),
	}
})

func callTimes() schema.Fields[model.CallCount] {
	return schema.Fields[model.CallCount]{
		schema.Show("average", schema.Int64, func(c *model.CallCount) uint64 { return c.Time / max(1, uint64(c.Count)) }, "Average duration of a request", schema.Unit("µs")),
		schema.F("total", schema.Int64, func(c *model.CallCount) *uint64 { return &c.Time }, "Total duration of all requests", schema.Unit("µs")),
	}
}

// userCountRow has the statistics of one user's requests, and the user's name.
type userCountRow struct {
	name string
	model.CallCount
}

var userCount = schema.Object("stats_user", func() schema.Fields[userCountRow] {
	return schema.Fields[userCountRow]{
		schema.F("user", schema.String, func(c *userCountRow) *string { return &c.name }, "Name of the user"),
		schema.F("count", schema.Int32, func(c *userCountRow) *uint32 { return &c.Count }, "Number of requests", schema.Count),
		schema.F("time", schema.Object("", callTimes).Type, func(c *userCountRow) *model.CallCount { return &c.CallCount }, "Durations of the requests"),
	}
})

func userCounts(s *StatsRow) []userCountRow {
	list := make([]userCountRow, len(s.AccountingStats.Users))
	for i, c := range s.AccountingStats.Users {
		list[i] = userCountRow{userName(s.Users, c.ID), c}
	}
	return list
}

// StatsAnswer is an answer with the accounting daemon's statistics.
type StatsAnswer struct {
	Stats StatsRow
	Pings []model.Ping
	Envelope
}

// AccountingDiag declares the fields of a StatsAnswer.
var AccountingDiag = enveloped("openapi_slurmdbd_stats_resp", func(a *StatsAnswer) *Envelope { return &a.Envelope },
	schema.F("statistics", Stats.Type, func(a *StatsAnswer) *StatsRow { return &a.Stats }, "Statistics of the accounting daemon", schema.Required(0)),
	schema.F("pings", schema.Named("slurmdbd_ping_array", schema.List(AccountingPing.Type)), func(a *StatsAnswer) *[]model.Ping { return &a.Pings }, "The accounting daemon, and its backup, if there is one", schema.Extension),
)

// GetAccountingDiag shows the accounting daemon's statistics.
var GetAccountingDiag = declare(scope.SlurmdbRead, noParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "diag/", ID: "get_diag", NoFields: true,
	Doc: "Show statistics of the accounting daemon", Answer: AccountingDiag,
	Description: "Returns statistics since the accounting daemon last reset them: numbers and durations of requests by type and by user, and durations of usage roll-ups.",
	AnswerDoc:   "Statistics of the accounting daemon",
})
