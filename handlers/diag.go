package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/handlers/rest"
)

// getDiag shows the controller's statistics.
func (h *handler) getDiag(c *rest.Call, _ *api.NoParams) error {
	stats, err := h.Controller.Stats(c.Context(), c.Credential())
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.Diag, &api.DiagAnswer{
		Stats:    api.ControllerStatsRow{ControllerStats: stats, Users: h.Users},
		Envelope: c.Envelope(),
	})
}
