package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// ReservationUpdate declares the fields of a reservation to create or change.
var ReservationUpdate = schema.Change("reservation_desc_msg", func() schema.Fields[model.ReservationUpdate] {
	return schema.Fields[model.ReservationUpdate]{
		schema.F("accounts", present(textOf(schema.Named("csv_string", nodeList))), func(u *model.ReservationUpdate) *model.Text { return &u.Accounts }, "Accounts that may use it; an account with a - before its name may not"),
		schema.F("burst_buffer", text, func(u *model.ReservationUpdate) *model.Text { return &u.BurstBuffer }, "Burst buffers that it holds"),
		schema.F("comment", text, func(u *model.ReservationUpdate) *model.Text { return &u.Comment }, "Any text"),
		schema.F("core_count", amountOf, func(u *model.ReservationUpdate) *model.Opt[uint32] { return &u.Cores }, "Number of cores that it holds", schema.Count),
		schema.F("duration", number, func(u *model.ReservationUpdate) *model.Opt[uint32] { return &u.Duration }, "Duration; a new reservation needs this or end_time", schema.Unit("min")),
		schema.F("end_time", momentInput, func(u *model.ReservationUpdate) *model.Time { return &u.EndTime }, "End time", schema.Unit(TimeText)),
		schema.F("features", text, func(u *model.ReservationUpdate) *model.Text { return &u.Features }, "Features that its nodes must have"),
		schema.F("flags", flagsInput, func(u *model.ReservationUpdate) *model.Opt[uint64] { return &u.Flags }, "Flags; a word that begins with NO_ removes the flag"),
		schema.F("groups", present(textOf(schema.Named("csv_string", nodeList))), func(u *model.ReservationUpdate) *model.Text { return &u.Groups }, "Groups that may use it"),
		schema.F("licenses", present(textOf(schema.Named("csv_string", nodeList))), func(u *model.ReservationUpdate) *model.Text { return &u.Licenses }, "Licenses that it holds"),
		schema.F("max_start_delay", number, func(u *model.ReservationUpdate) *model.Opt[uint32] { return &u.MaxStartDelay }, "Time by which a job outside of the reservation may delay a job in it", schema.Unit("s")),
		schema.F("name", schema.String, func(u *model.ReservationUpdate) *string { return &u.Name }, "Name of the reservation; required"),
		schema.F("node_count", amountOf, func(u *model.ReservationUpdate) *model.Opt[uint32] { return &u.NodeCount }, "Number of nodes that it holds", schema.Count),
		schema.F("node_list", nonempty(textOf(nodeArray)), func(u *model.ReservationUpdate) *model.Text { return &u.Nodes }, "Nodes that it holds, as a host list; ALL for all"),
		schema.F("partition", text, func(u *model.ReservationUpdate) *model.Text { return &u.Partition }, "Partition to take the nodes from"),
		schema.Group("purge_completed", "Deletion of the unused reservation", schema.Fields[model.ReservationUpdate]{
			schema.F("time", number, func(u *model.ReservationUpdate) *model.Opt[uint32] { return &u.PurgeCompleted }, "Time without jobs after which the reservation is deleted", schema.Unit("s")),
		}),
		schema.F("start_time", momentInput, func(u *model.ReservationUpdate) *model.Time { return &u.StartTime }, "Start time; required for a new reservation", schema.Unit(TimeText)),
		schema.F("tres", present(textOf(tresText)), func(u *model.ReservationUpdate) *model.Text { return &u.TRES }, "Trackable resources that it holds"),
		schema.F("users", present(textOf(schema.Named("csv_string", nodeList))), func(u *model.ReservationUpdate) *model.Text { return &u.Users }, "Users that may use it; a user with a - before the name may not"),
	}
})

// amountOf returns the type of a number of nodes or cores, which must not be
// infinite.
func amountOf() schema.Type[model.Opt[uint32]] { return amountType{} }

type amountType struct{ wrapper[uint32] }

func (t amountType) Parser(v schema.View) func(*schema.Report, *schema.Value, *model.Opt[uint32]) bool {
	parse := t.wrapper.Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *model.Opt[uint32]) bool {
		if !parse(r, doc, into) {
			return false
		}
		return !into.Infinite || r.Error(doc, "must not be infinite")
	}
}

// momentInput returns the type of a time in a request. In the model, 0 means
// that the time is not set, so it refuses 0. A controller would take the number
// for "infinite" as a date.
func momentInput() schema.Type[model.Time] {
	plain := moment()
	render, parse := plain.Renderer(schema.View{}), plain.Parser(schema.View{})
	return shaped[model.Time]{schema.Simple(nil, func(e schema.Encoder, t *model.Time) {
		at := *t
		if at == 0 {
			at = timeNotSet
		}
		render(e, &at)
	}, func(r *schema.Report, doc *schema.Value, into *model.Time) bool {
		switch {
		case !parse(r, doc, into):
			return false
		case *into == timeInfinite:
			return r.Error(doc, "must not be infinite")
		case *into == 0 && (doc.Kind == schema.Number || isSet(doc)):
			return r.Error(doc, "must not be 0")
		}
		return true
	}), plain.Shape}
}

// isSet reports whether doc is an object {set, infinite, number} that is set.
func isSet(doc *schema.Value) bool {
	return slices.ContainsFunc(doc.Items, func(m schema.Value) bool { return m.Key == "set" && m.Text == "true" })
}

// flagsInput returns the type of the flags in a request. If the client sends no
// flags, the value is unset and the reservation's flags stay unchanged.
func flagsInput() schema.Type[model.Opt[uint64]] { return flagsInputType{} }

type flagsInputType struct{}

func (flagsInputType) Shape(v schema.View) *schema.Shape { return reservationFlags.Shape(v) }

func (flagsInputType) Renderer(v schema.View) func(schema.Encoder, *model.Opt[uint64]) {
	render := reservationFlags.Renderer(v)
	return func(e schema.Encoder, o *model.Opt[uint64]) {
		n := o.Or(0)
		render(e, &n)
	}
}

func (flagsInputType) Parser(v schema.View) func(*schema.Report, *schema.Value, *model.Opt[uint64]) bool {
	parse := reservationFlags.Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *model.Opt[uint64]) bool {
		var n uint64
		if !parse(r, doc, &n) {
			return false
		}
		if *into = (model.Opt[uint64]{}); n != 0 {
			*into = model.Some(n)
		}
		return true
	}
}

// tresText returns the type of a list of trackable resources. The model stores
// the list as one string, such as "cpu=4,gres/gpu=2".
func tresText() schema.Type[string] {
	list := amounts()
	parse := schema.List(withInitial(tresInput.Type, func() model.TRES { return model.TRES{Count: noCount} }))().Parser(schema.View{})
	return shaped[string]{schema.Simple(nil,
		func(e schema.Encoder, s *string) {
			tres := textTRES(*s)
			list.Renderer(schema.View{})(e, &tres)
		},
		func(r *schema.Report, doc *schema.Value, into *string) bool {
			if doc.Kind == schema.Text {
				r.WarnKind(doc, schema.Array)
				*into = doc.Text
				return true
			}
			var tres []model.TRES
			if !parse(r, doc, &tres) {
				return false
			}
			var parts []string
			for _, t := range tres {
				name := tresName(t)
				if strings.ContainsAny(name, ",=") {
					return r.Error(doc, "%q is not a trackable resource", schema.Shorten(name))
				}
				if t.Count == noCount {
					return r.Error(doc, "the trackable resource %q has no count", schema.Shorten(name))
				}
				parts = append(parts, fmt.Sprintf("%s=%d", name, t.Count))
			}
			*into = strings.Join(parts, ",")
			return true
		}), list.Shape}
}

// tresInput declares the fields with which a request specifies a trackable
// resource and its amount.
var tresInput = schema.Object("tres", func() schema.Fields[model.TRES] {
	return schema.Fields[model.TRES]{
		schema.F("type", schema.String, func(t *model.TRES) *string { return &t.Type }, "Type, such as cpu or gres", schema.Required(0)),
		schema.F("name", schema.String, func(t *model.TRES) *string { return &t.Name }, "Name of the resource, if there are several of the type"),
		schema.Ignore[model.TRES]("id", schema.Int32[int32], "Ignored: type and name identify the resource", schema.Bare),
		schema.F("count", schema.Int64, func(t *model.TRES) *uint64 { return &t.Count }, "Number of units; for memory in MiB", schema.Count),
	}
})

// textTRES parses the text that tresText produces.
func textTRES(s string) []model.TRES {
	var list []model.TRES
	for _, part := range commaList(s) {
		name, count, _ := strings.Cut(part, "=")
		var t model.TRES
		t.Type, t.Name, _ = strings.Cut(name, "/")
		t.Count, _ = strconv.ParseUint(count, 10, 64) // 0 if the client's text has no valid number
		list = append(list, t)
	}
	return list
}

// ReservationUpdates is a request to create or change several reservations.
type ReservationUpdates struct{ Reservations []model.ReservationUpdate }

// ReservationUpdatesBody declares the fields of a ReservationUpdates.
var ReservationUpdatesBody = schema.Object("reservation_mod_req", func() schema.Fields[ReservationUpdates] {
	return schema.Fields[ReservationUpdates]{
		schema.F("reservations", reservationUpdates, func(u *ReservationUpdates) *[]model.ReservationUpdate { return &u.Reservations }, "The reservations")}
})

var reservationUpdates = schema.Named("reservation_desc_msg_list", schema.List(ReservationUpdate.Type))

// Bits of reservationFlags that the functions below test.
const (
	reservationTimeFloat  uint64 = 1 << 17
	reservationPartNodes  uint64 = 1 << 12
	reservationRecurring  uint64 = 1<<2 | 1<<4 | 1<<21 | 1<<23 | 1<<35
	reservationForceStart uint64 = 1 << 42
)

// CheckNewReservation returns an error if u is not valid as a new reservation:
// a field is missing, or values contradict each other. It also returns the name
// of the field at fault.
func CheckNewReservation(u *model.ReservationUpdate) (field string, err error) {
	flags := u.Flags.Or(0)
	switch {
	case u.StartTime == 0:
		return "start_time", errors.New("a new reservation needs start_time")
	case u.EndTime == 0 && !u.Duration.Set && !u.Duration.Infinite:
		return "duration", errors.New("a new reservation needs duration or end_time")
	case u.EndTime != 0 && u.EndTime <= u.StartTime:
		return "end_time", errors.New("the reservation would end before it begins")
	case u.EndTime != 0 && u.Duration.Set && u.EndTime != u.StartTime+60*model.Time(u.Duration.Number):
		return "duration", errors.New("duration and end_time contradict each other")
	case u.Users.Empty() && u.Groups.Empty() && u.Accounts.Empty():
		return "users", errors.New("a new reservation needs users, groups or accounts")
	case !u.Users.Empty() && !u.Groups.Empty():
		return "groups", errors.New("users and groups can't both be set")
	case flags&reservationForceStart != 0 && flags&reservationRecurring == 0:
		return "flags", errors.New("FORCE_START is for reservations that recur")
	case flags&reservationPartNodes != 0 && (u.Partition.Empty() || !u.Nodes.Empty() && !strings.EqualFold(u.Nodes.String(), "ALL")):
		return "flags", errors.New("PART_NODES needs partition, and ALL as node_list")
	case u.Partition.Empty() && u.Nodes.Empty() && u.NodeCount.Or(0) == 0 && u.Cores.Or(0) == 0 && u.Licenses.Empty() && u.BurstBuffer.Empty() && u.TRES.Empty():
		return "node_list", errors.New("a new reservation needs node_list, node_count, core_count, partition, licenses, burst_buffer or tres")
	}
	return "", nil
}

// PastTime returns the name of the field of u that is a time before now, or "" if
// there is none. The start of a reservation whose start floats may lie in the
// past.
func PastTime(u *model.ReservationUpdate, now model.Time) (field string) {
	switch {
	case u.StartTime != 0 && u.StartTime < now && u.Flags.Or(0)&reservationTimeFloat == 0:
		return "start_time"
	case u.EndTime != 0 && u.EndTime < now:
		return "end_time"
	}
	return ""
}

// LostReservationFlags returns the flags of a change that the controller would
// ignore without an error. The argument current has the reservation's flags
// before the change.
func LostReservationFlags(u *model.ReservationUpdate, current uint64) []string {
	const (
		maint, static, replace, replaceDown uint64 = 1, 1 << 10, 1 << 18, 1 << 30
		durationChange                      uint64 = 1<<27 | 1<<28
		fixed                               uint64 = 1<<15 | 1<<19 | 1<<37 | 1<<38 | 1<<41 | 1<<42 // set only when a reservation is created
	)
	flags := u.Flags.Or(0)
	lost := flags & fixed
	if flags&static != 0 {
		lost |= flags & maint
	}
	if flags&replace != 0 {
		lost |= flags & replaceDown
	}
	lost &^= current
	if !u.Duration.Set {
		lost |= flags & durationChange
	}
	return reservationFlags.Names(lost)
}

// IneffectiveTRES returns the types of trackable resources in u that the
// controller would ignore without an error. It uses generic resources (gres)
// only to choose the nodes of a new reservation.
func IneffectiveTRES(u *model.ReservationUpdate, exists bool) (types []string) {
	for part := range strings.SplitSeq(u.TRES.String(), ",") {
		name, _, _ := strings.Cut(part, "=")
		switch typ, _, _ := strings.Cut(name, "/"); typ {
		case "", "cpu", "node", "license", "bb":
		case "gres":
			if exists {
				types = append(types, typ)
			}
		default:
			types = append(types, typ)
		}
	}
	return types
}

// ReserveWholePartition completes a new reservation that names a partition but
// no resources. The reservation then reserves all nodes of the partition.
func ReserveWholePartition(u *model.ReservationUpdate) {
	resources := !u.Nodes.Empty() || u.NodeCount.Set || u.Cores.Set || !u.Licenses.Empty() || !u.BurstBuffer.Empty() ||
		!u.TRES.Empty() || !u.Features.Empty()
	if u.Partition.Empty() || resources {
		return
	}
	u.Nodes, u.Flags = "ALL", model.Some(u.Flags.Or(0)|reservationPartNodes)
}

// ReservationsChangedAnswer is the answer to PostReservation and
// PostReservations.
type ReservationsChangedAnswer struct {
	Reservations []model.ReservationUpdate
	Envelope
}

// ReservationsChanged declares the fields of a ReservationsChangedAnswer.
var ReservationsChanged = enveloped("openapi_reservation_mod_resp", func(a *ReservationsChangedAnswer) *Envelope { return &a.Envelope },
	schema.F("reservations", reservationUpdates, func(a *ReservationsChangedAnswer) *[]model.ReservationUpdate { return &a.Reservations }, "The reservations that were created or changed, as in the request", schema.Required(0)),
)

// PostReservation creates or changes a reservation.
var PostReservation = declare(scope.ClusterAdmin, noParams, Endpoint{
	Method: http.MethodPost, Path: "reservation", ID: "post_reservation",
	Doc: "Create or change a reservation", Request: ReservationUpdate, Answer: ReservationsChanged, Since: V43,
	Example:     `{"name": "maintenance", "start_time": {"set": true, "number": 4102444800}, "duration": {"set": true, "number": 60}, "partition": "debug", "users": ["root"], "flags": ["MAINT"]}`,
	Description: "Creates the named reservation. If it exists, changes those of its fields that are in the body. The name of an existing reservation is not case-sensitive. A new reservation needs: start_time; duration or end_time; resources; and users, groups or accounts. If it names a partition but no resources, it holds all nodes of the partition. Requires operator rights.",
	RequestDoc:  "The reservation",
	AnswerDoc:   "The reservation that was created or changed, as in the request",
})

// PostReservations creates or changes reservations.
var PostReservations = declare(scope.ClusterAdmin, noParams, Endpoint{
	Method: http.MethodPost, Path: "reservations/", ID: "post_reservations",
	Doc: "Create or change reservations", Request: ReservationUpdatesBody, Answer: ReservationsChanged, Since: V43,
	Example:     `{"reservations": [{"name": "maintenance", "start_time": {"set": true, "number": 4102444800}, "duration": {"set": true, "number": 60}, "partition": "debug", "users": ["root"], "flags": ["MAINT"]}]}`,
	Description: "Creates or changes one reservation for each entry, in order, like POST reservation. If the controller refuses an entry, the next ones are still tried. The status is then that of the first refusal, errors has one entry for each refusal, and reservations has those that were created or changed.",
	RequestDoc:  "The reservations",
	AnswerDoc:   "The reservations, as in the request; all were created or changed",
})
