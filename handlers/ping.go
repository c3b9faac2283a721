package handlers

import (
	"net/http"
	"slices"

	"schedrestd/api"
	"schedrestd/errs"
	"schedrestd/model"
)

// getPing asks every controller. When none answers, nobody has said that the token is
// genuine: then it is an error like any other, and shows no names of machines.
func (h *handler) getPing(c *call, _ *api.NoParams) error {
	pings, err := h.Controller.Ping(c.ctx, c.cred)
	if err != nil {
		return err
	}
	if !anyResponds(pings) {
		return errs.New(errs.Unavailable, "no controller answers")
	}
	return send(c, http.StatusOK, api.Pings, &api.PingsAnswer{Pings: pings, Envelope: c.envelope()})
}

func anyResponds(pings []model.Ping) bool {
	return slices.ContainsFunc(pings, func(p model.Ping) bool { return p.Responding })
}
