package handlers

import (
	"net/http"

	"schedrestd/api"
)

// getDiag shows the controller's statistics.
func (h *handler) getDiag(c *Call, _ *api.NoParams) error {
	stats, err := h.Controller.Stats(c.Context(), c.Credential())
	if err != nil {
		return err
	}
	return Send(c, http.StatusOK, api.Diag, &api.DiagAnswer{
		Stats:    api.ControllerStatsRow{ControllerStats: stats, Users: h.Users},
		Envelope: c.Envelope(),
	})
}
