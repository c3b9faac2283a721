package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/handlers/rest"
)

// getAccountingConf shows the accounting daemon's configuration.
func (h *handler) getAccountingConf(c *rest.Call, _ *api.NoParams) error {
	conf, err := h.Accounting.Conf(c.Context(), c.Credential())
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.AccountingConf, &api.AccountingConfAnswer{Conf: *conf, Envelope: c.Envelope()})
}
