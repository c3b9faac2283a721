package handlers

import (
	"net/http"

	"schedrestd/api"
)

// getConf shows the controller's configuration.
func (h *handler) getConf(c *Call, p *api.SinceParams) error {
	conf, err := h.Controller.Configuration(c.Context(), c.Credential(), p.Since)
	if err != nil {
		return err
	}
	return Send(c, http.StatusOK, api.Conf, &api.ConfAnswer{Configuration: *conf, Envelope: c.Envelope()})
}
