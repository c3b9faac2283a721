package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/handlers/rest"
)

// getConf shows the controller's configuration.
func (h *handler) getConf(c *rest.Call, p *api.SinceParams) error {
	conf, err := h.Controller.Configuration(c.Context(), c.Credential(), p.Since)
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.Conf, &api.ConfAnswer{Configuration: *conf, Envelope: c.Envelope()})
}
