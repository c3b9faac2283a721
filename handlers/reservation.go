package handlers

import (
	"errors"
	"net/http"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// getReservations returns the reservations that the filter of the request selects,
// one at a time.
func (h *handler) getReservations(c *rest.Call, p *api.ReservationListParams) error {
	list := h.reservationList(c, p.Query, func(r *model.Reservation) bool { return p.Match(r.Nodes) })
	if done, err := rest.Watch(c, list); done || err != nil {
		return err
	}
	body := api.ReservationsAnswer{Envelope: c.Envelope()}
	body.Reservations = rest.Paged(c, &body.Envelope, list.Set.Key, list.Records(c, func(t model.ListTimes) { body.LastUpdate = t.LastUpdate }))
	return rest.Send(c, http.StatusOK, api.Reservations, &body)
}

func (h *handler) getReservation(c *rest.Call, p *api.ReservationParams) error {
	p.Undated = c.Waits()
	list := h.reservationList(c, p.Query, func(r *model.Reservation) bool { return strings.EqualFold(r.Name, p.Name) })
	if _, err := rest.Watch(c, list); err != nil {
		return err
	}
	reservation, lastUpdate, err := h.Controller.Reservation(c.Context(), c.Credential(), p.Name, p.Query)
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.Reservations, &api.ReservationsAnswer{
		Reservations: schema.One(reservation),
		LastUpdate:   lastUpdate,
		Envelope:     c.Envelope(),
	})
}

// postReservation creates or changes a reservation.
func (h *handler) postReservation(c *rest.Call, _ *api.NoParams) error {
	u, err := rest.ReadBody(c, api.ReservationUpdate)
	if err != nil {
		return err
	}
	return h.changeReservations(c, "", []model.ReservationUpdate{*u})
}

// postReservations creates or changes reservations.
func (h *handler) postReservations(c *rest.Call, _ *api.NoParams) error {
	body, err := rest.ReadBody(c, api.ReservationUpdatesBody)
	if err != nil {
		return err
	}
	return h.changeReservations(c, "#/reservations/", body.Reservations)
}

// changeReservations changes the reservations in list that already exist, and
// creates the others.
func (h *handler) changeReservations(c *rest.Call, at string, list []model.ReservationUpdate) error {
	if nothingToChange(c, at, list) {
		return rest.Send(c, http.StatusOK, api.ReservationsChanged, &api.ReservationsChangedAnswer{Envelope: c.Envelope()})
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	if err := checkNames("reservation", at, names); err != nil {
		return err
	}
	existing := map[string]model.Reservation{} // by name; to slurmctld, one in another case is another reservation
	_, err := h.Controller.Reservations(c.Context(), c.Credential(), model.Query{}, func(r *model.Reservation) error {
		existing[r.Name] = *r
		return nil
	})
	if err != nil {
		return err
	}
	results, err := changeEach(c, "reservation", at, names, func(i int) error {
		u := list[i]
		if current, known := existing[u.Name]; known {
			name := u.Name
			dropHeld(&u, &current)
			if u.Partition == model.Emptied { // slurmctld 24.11 may crash
				return errs.New(errs.Invalid, "the partition of a reservation can't be removed").WithSource(sourceOf(at, i, "partition")).WithNumber(slurmerror.InvalidPartition)
			}
			if lost := api.LostReservationFlags(&u, current.Flags); len(lost) > 0 {
				c.Warn(sourceOf(at, i, "flags"), "%s: no effect on an existing reservation", strings.Join(lost, ", "))
			}
			warnIneffectiveTRES(c, &u, true, sourceOf(at, i, "tres"))
			if u == (model.ReservationUpdate{Name: name}) {
				if err := noChange(c, "reservation", name, sourceOf(at, i, "name")); err != nil {
					return err
				}
			}
			err := explainTime(c, h.Controller.UpdateReservation(c.Context(), c.Credential(), &u), &u, at, i)
			return explainPartly(c, err, api.WholeReservation, &current, func() (*model.Reservation, error) {
				now, _, err := h.Controller.Reservation(c.Context(), c.Credential(), name, model.Query{})
				return now, err
			}, strings.TrimPrefix(at, "#/"), nil)
		}
		if field, err := api.CheckNewReservation(&u); err != nil {
			return errs.New(errs.Invalid, "reservation %s: %v", u.Name, err).WithSource(sourceOf(at, i, field)).WithNumber(slurmerror.InvalidReservation)
		}
		warnIneffectiveTRES(c, &u, false, sourceOf(at, i, "tres"))
		api.ReserveWholePartition(&u)
		list[i] = u // the answer shows what the controller got
		err := h.Controller.CreateReservation(c.Context(), c.Credential(), &u)
		if err == nil {
			existing[u.Name] = model.Reservation{Name: u.Name}
		}
		return explainTime(c, err, &u, at, i)
	})
	if err != nil {
		return err
	}
	answer := api.ReservationsChangedAnswer{Envelope: results.envelope(c)}
	for i := range list {
		if results.errs[i] == nil {
			answer.Reservations = append(answer.Reservations, list[i])
		}
	}
	return rest.Send(c, results.status(), api.ReservationsChanged, &answer)
}

// explainTime adds to the controller's error that a time is invalid which of the
// times in record i of the list at lies in the past.
func explainTime(c *rest.Call, err error, u *model.ReservationUpdate, at string, i int) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || e.Number != slurmerror.InvalidTimeValue {
		return err
	}
	field := api.PastTime(u, model.At(c.Started()))
	if field == "" {
		return err
	}
	explained := *e
	explained.Message, explained.Source = "reservation "+u.Name+": "+field+" lies in the past", sourceOf(at, i, field)
	return &explained
}

func warnIneffectiveTRES(c *rest.Call, u *model.ReservationUpdate, exists bool, source string) {
	if types := api.IneffectiveTRES(u, exists); len(types) > 0 {
		c.Warn(source, "%s: no effect on the reservation", strings.Join(types, ", "))
	}
}

// dropHeld removes the resources from a change that the reservation already
// holds. An answer has all of them, so a client that sends an answer back, with
// another comment, sends all of them too. But slurmctld refuses a change that
// has several, and would choose other nodes for some.
func dropHeld(u *model.ReservationUpdate, current *model.Reservation) {
	if u.Nodes.String() == current.Nodes {
		u.Nodes = ""
	}
	if u.TRES.String() == current.TRES {
		u.TRES = ""
	}
	if u.Partition.String() == current.Partition {
		u.Partition = ""
	}
	if u.NodeCount == model.Some(current.NodeCount) {
		u.NodeCount = model.Opt[uint32]{}
	}
	if u.Cores == model.Some(current.Cores) {
		u.Cores = model.Opt[uint32]{}
	}
}

func (h *handler) deleteReservation(c *rest.Call, p *api.NamedReservationParams) error {
	return h.changeNamed(c, "reservation", p.Name, rest.InPath+"reservation_name", func() error {
		return h.Controller.DeleteReservation(c.Context(), c.Credential(), p.Name)
	})
}
