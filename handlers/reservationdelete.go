package handlers

import "schedrestd/api"

// deleteReservation deletes a reservation.
func (h *handler) deleteReservation(c *Call, p *api.NamedReservationParams) error {
	return h.changeNamed(c, "reservation", p.Name, InPath+"reservation_name", func() error {
		return h.Controller.DeleteReservation(c.Context(), c.Credential(), p.Name)
	})
}
