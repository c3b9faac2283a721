package handlers

import "schedrestd/api"

// deleteReservation deletes a reservation.
func (h *handler) deleteReservation(c *call, p *api.NamedReservationParams) error {
	return h.changeNamed(c, "reservation", p.Name, inPath+"reservation_name", func() error {
		return h.Controller.DeleteReservation(c.Context(), c.Credential(), p.Name)
	})
}
