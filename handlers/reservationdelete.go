package handlers

import (
	"schedrestd/api"
	"schedrestd/handlers/rest"
)

// deleteReservation deletes a reservation.
func (h *handler) deleteReservation(c *rest.Call, p *api.NamedReservationParams) error {
	return h.changeNamed(c, "reservation", p.Name, rest.InPath+"reservation_name", func() error {
		return h.Controller.DeleteReservation(c.Context(), c.Credential(), p.Name)
	})
}
