package handlers

import (
	"net/http"
	"slices"

	"schedrestd/api"
	"schedrestd/errs"
	"schedrestd/model"
)

// getPing pings every controller. If no controller answers, the token has not
// been verified, so the error contains no host names.
func (h *handler) getPing(c *call, _ *api.NoParams) error {
	pings, err := h.Controller.Ping(c.ctx, c.cred)
	if err != nil {
		return err
	}
	if !anyResponds(pings) {
		return noAnswerError(pings, "no controller answers")
	}
	return send(c, http.StatusOK, api.Pings, &api.PingsAnswer{Pings: pings, Envelope: c.envelope()})
}

// noAnswerError returns the error for a ping that no daemon answered. The error
// is a timeout if the primary daemon, which is first in pings, timed out.
// Otherwise that daemon was unreachable.
func noAnswerError(pings []model.Ping, text string) error {
	if len(pings) > 0 && pings[0].TimedOut {
		return errs.New(errs.Timeout, "%s in time", text)
	}
	return errs.New(errs.Unavailable, "%s", text)
}

func anyResponds(pings []model.Ping) bool {
	return slices.ContainsFunc(pings, func(p model.Ping) bool { return p.Responding })
}
