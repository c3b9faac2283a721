package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/handlers/rest"
)

func (h *handler) getAccountingPing(c *rest.Call, _ *api.NoParams) error {
	pings, err := h.Accounting.Ping(c.Context(), c.Credential())
	if err != nil {
		return err
	}
	if !anyResponds(pings) {
		return noAnswerError(pings, "the accounting daemon does not answer")
	}
	return rest.Send(c, http.StatusOK, api.AccountingPings, &api.PingsAnswer{Pings: pings, Envelope: c.Envelope()})
}

// getAccountingDiag returns the accounting daemon's statistics, and whether the
// daemon answered a ping.
func (h *handler) getAccountingDiag(c *rest.Call, _ *api.NoParams) error {
	stats, pings, err := h.Accounting.Stats(c.Context(), c.Credential())
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.AccountingDiag, &api.StatsAnswer{
		Stats:    api.StatsRow{AccountingStats: stats, Users: h.Users},
		Pings:    pings,
		Envelope: c.Envelope(),
	})
}
