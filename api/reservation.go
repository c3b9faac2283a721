package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// Reservation declares the fields of a reservation, which reserves resources
// for users, accounts or groups.
var Reservation = schema.Object("reservation_info", reservationFields)

// WholeReservation declares these fields and those that only requests have, to
// find out what has changed.
var WholeReservation = schema.Object("", func() schema.Fields[model.Reservation] {
	return append(reservationFields(), schema.F("comment", schema.String, func(r *model.Reservation) *string { return &r.Comment }, ""))
})

func reservationFields() schema.Fields[model.Reservation] {
	return schema.Fields[model.Reservation]{
		schema.F("accounts", schema.String, func(r *model.Reservation) *string { return &r.Accounts }, "Accounts allowed to use it, separated by commas; an account prefixed with - is denied"),
		schema.F("burst_buffer", schema.String, func(r *model.Reservation) *string { return &r.BurstBuffer }, "Burst buffers that it holds"),
		schema.F("core_count", schema.Int32, func(r *model.Reservation) *uint32 { return &r.Cores }, "Number of cores that it holds", schema.Count),
		schema.F("core_specializations", schema.Named("reservation_info_core_spec", schema.List(coreSpecialization.Type)), func(r *model.Reservation) *[]model.CoreSpecialization { return &r.CoreSpecializations }, "Nodes of which only some cores are reserved"),
		schema.F("end_time", moment, func(r *model.Reservation) *model.Time { return &r.EndTime }, "End time", schema.Unit(UnixTime)),
		schema.F("features", schema.String, func(r *model.Reservation) *string { return &r.Features }, "Features of the nodes"),
		schema.F("flags", reservationFlags.Type, func(r *model.Reservation) *uint64 { return &r.Flags }, "Flags of the reservation"),
		schema.F("groups", schema.String, func(r *model.Reservation) *string { return &r.Groups }, "Groups allowed to use it, separated by commas"),
		schema.F("licenses", schema.String, func(r *model.Reservation) *string { return &r.Licenses }, "Licenses that it holds"),
		schema.F("max_start_delay", schema.Int32, func(r *model.Reservation) *uint32 { return &r.MaxStartDelay }, "Time by which other jobs may delay jobs in the reservation", schema.Unit("s")),
		schema.F("name", schema.String, func(r *model.Reservation) *string { return &r.Name }, "Name of the reservation"),
		schema.F("node_count", schema.Int32, func(r *model.Reservation) *uint32 { return &r.NodeCount }, "Number of nodes that it holds", schema.Count),
		schema.F("node_list", schema.String, func(r *model.Reservation) *string { return &r.Nodes }, "Names of the nodes, as a host list"),
		schema.F("partition", schema.String, func(r *model.Reservation) *string { return &r.Partition }, "Partition from which the nodes were taken"),
		schema.Group("purge_completed", "Deletion of the unused reservation", schema.Fields[model.Reservation]{
			schema.F("time", number, func(r *model.Reservation) *model.Opt[uint32] { return &r.PurgeCompleted }, "Time without jobs after which the reservation is deleted", schema.Unit("s")),
		}),
		schema.F("start_time", moment, func(r *model.Reservation) *model.Time { return &r.StartTime }, "Start time", schema.Unit(UnixTime)),
		schema.Show("watts", formerNumber, func(*model.Reservation) (none struct{}) { return }, "No longer used", schema.Bare, schema.Deprecated(V41), schema.Until(V45)),
		schema.F("tres", schema.String, func(r *model.Reservation) *string { return &r.TRES }, "Trackable resources that it holds"),
		schema.F("users", schema.String, func(r *model.Reservation) *string { return &r.Users }, "Users allowed to use it, separated by commas; a user prefixed with - is denied"),
	}
}

var coreSpecialization = schema.Object("reservation_core_spec", func() schema.Fields[model.CoreSpecialization] {
	return schema.Fields[model.CoreSpecialization]{
		schema.F("node", schema.String, func(c *model.CoreSpecialization) *string { return &c.Node }, "Name of the node"),
		schema.F("core", schema.String, func(c *model.CoreSpecialization) *string { return &c.Cores }, "Numbers of the cores, as ranges"),
	}
})

// formerNumber returns the type of an object that is always empty. Slurm's
// documents still describe it as a wrapped number.
func formerNumber() schema.Type[struct{}] {
	return shaped[struct{}]{empty(), wrapper[uint32]{}.Shape}
}

// reservationFlags are the names of a reservation's flags. Most names that
// begin with NO_ are used only to change a reservation: NO_DAILY, for example,
// clears the flag DAILY.
var reservationFlags = schema.Words("reservation_flags",
	flag("MAINT", 0),
	flag("NO_MAINT", 1),
	flag("DAILY", 2),
	flag("NO_DAILY", 3),
	flag("WEEKLY", 4),
	flag("NO_WEEKLY", 5),
	flag("IGNORE_JOBS", 6),
	flag("NO_IGNORE_JOBS", 7),
	flag("ANY_NODES", 8),
	flag("NO_ANY_NODES", 9, schema.Since(V44)),
	flag("STATIC", 10),
	flag("NO_STATIC", 11),
	flag("PART_NODES", 12),
	flag("NO_PART_NODES", 13),
	flag("OVERLAP", 14),
	flag("SPEC_NODES", 15),
	flag("TIME_FLOAT", 17),
	flag("REPLACE", 18),
	flag("ALL_NODES", 19),
	flag("PURGE_COMP", 20),
	flag("WEEKDAY", 21),
	flag("NO_WEEKDAY", 22),
	flag("WEEKEND", 23),
	flag("NO_WEEKEND", 24),
	flag("FLEX", 25),
	flag("NO_FLEX", 26),
	flag("DURATION_PLUS", 27),
	flag("DURATION_MINUS", 28),
	flag("NO_HOLD_JOBS_AFTER_END", 29),
	flag("REPLACE_DOWN", 30, schema.Since(V44)),
	flag("NO_PURGE_COMP", 31),
	flag("MAGNETIC", 32),
	flag("NO_MAGNETIC", 33, schema.Since(V44)),
	flag("SKIP", 34),
	flag("HOURLY", 35),
	flag("NO_HOURLY", 36),
	flag("USER_DELETE", 39, schema.Since(V41)),
	flag("FORCE_START", 42, schema.Since(V44)),
	flag("NO_USER_DELETE", 40, schema.Since(V41)),
	schema.Bit("REOCCURRING", uint64(1)<<2|1<<4|1<<21|1<<23|1<<35),
	flag("TRES_PER_NODE", 38, schema.Since(V44)),
)

// ReservationsAnswer is an answer with reservations. LastUpdate is valid only
// after all reservations have been read from the stream.
type ReservationsAnswer struct {
	Reservations schema.Stream[model.Reservation]
	LastUpdate   model.Time
	Envelope
}

// Reservations declares the fields of a ReservationsAnswer.
var Reservations = enveloped("openapi_reservation_resp", func(a *ReservationsAnswer) *Envelope { return &a.Envelope },
	schema.F("reservations", schema.Named("reservation_info_msg", schema.StreamOf(Reservation.Type)), func(a *ReservationsAnswer) *schema.Stream[model.Reservation] { return &a.Reservations }, "The reservations", schema.Required(0)),
	schema.F("last_update", moment, func(a *ReservationsAnswer) *model.Time { return &a.LastUpdate }, "Time of the last change of any object in the list", schema.Unit(UnixTime), schema.Required(0)),
)

// SinceParams are the parameters of GetReservations and GetConf. The only
// parameter is update_time.
type SinceParams struct{ model.Query }

var sinceParams = schema.Object("", func() schema.Fields[SinceParams] {
	return schema.Fields[SinceParams]{
		updateTime(func(p *SinceParams) *model.Query { return &p.Query })}
})

// ReservationListParams are the parameters of GetReservations.
type ReservationListParams struct {
	model.Query
	HostFilter
}

var reservationListParams = schema.Object("", func() schema.Fields[ReservationListParams] {
	return append(schema.Fields[ReservationListParams]{
		updateTime(func(p *ReservationListParams) *model.Query { return &p.Query }),
	}, hostFilterFields(func(p *ReservationListParams) *HostFilter { return &p.HostFilter })...)
})

// GetReservations lists the reservations.
var GetReservations = declare(scope.ComputeRead, reservationListParams, Endpoint{
	Method: http.MethodGet, Path: "reservations/", ID: "get_reservations", Paged: true, Collection: "reservations",
	Doc: "List the reservations", Answer: Reservations,
	Description: "Returns all current and future reservations that the user may see, in the controller's order.",
	AnswerDoc:   "The reservations",
})

type ReservationParams struct {
	Name string
	model.Query
}

var reservationParams = schema.Object("", func() schema.Fields[ReservationParams] {
	return schema.Fields[ReservationParams]{
		schema.F("reservation_name", schema.String, func(p *ReservationParams) *string { return &p.Name }, "Name of the reservation", schema.Required(0)),
		updateTime(func(p *ReservationParams) *model.Query { return &p.Query }),
	}
})

var GetReservation = declare(scope.ComputeRead, reservationParams, Endpoint{
	Method: http.MethodGet, Path: "reservation/{reservation_name}", ID: "get_reservation",
	Doc: "Show one reservation", Answer: Reservations,
	Description: "Returns the reservation with this name, in a list. The name is not case-sensitive unless two names differ only in case.",
	AnswerDoc:   "The reservation, in a list",
})
