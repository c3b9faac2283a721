package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/model"
)

// getReservations returns the reservations, one at a time.
func (h *handler) getReservations(c *rest.Call, p *api.SinceParams) error {
	body := api.ReservationsAnswer{Envelope: c.Envelope()}
	body.Reservations = func(each func(*model.Reservation) error) (err error) {
		body.LastUpdate, err = h.Controller.Reservations(c.Context(), c.Credential(), p.Query, each)
		return err
	}
	return rest.Send(c, http.StatusOK, api.Reservations, &body)
}

// getReservation returns one reservation.
func (h *handler) getReservation(c *rest.Call, p *api.ReservationParams) error {
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
