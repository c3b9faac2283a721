package handlers

import (
	"errors"
	"net/http"
	"slices"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// getPing pings all controllers. If none answers, the token has not been
// verified, so the answer is an error without the names of hosts.
func (h *handler) getPing(c *rest.Call, _ *api.NoParams) error {
	pings, err := h.Controller.Ping(c.Context(), c.Credential())
	if err != nil {
		return err
	}
	if !anyResponds(pings) {
		return noAnswerError(pings, "no controller answers")
	}
	return rest.Send(c, http.StatusOK, api.Pings, &api.PingsAnswer{Pings: pings, Envelope: c.Envelope()})
}

// noAnswerError returns the error for a ping that no daemon answered. If the
// primary daemon, which is first in pings, timed out, the error is
// errs.Timeout. If it did not time out, the error is errs.Unavailable.
func noAnswerError(pings []model.Ping, text string) error {
	e := errs.New(errs.Unavailable, "%s", text)
	if len(pings) > 0 && pings[0].TimedOut {
		e = errs.New(errs.Timeout, "%s in time", text)
	}
	var causes []error
	for _, p := range pings {
		causes = append(causes, p.Err)
	}
	e.Err = errors.Join(causes...)
	return e
}

func anyResponds(pings []model.Ping) bool {
	return slices.ContainsFunc(pings, func(p model.Ping) bool { return p.Responding })
}
