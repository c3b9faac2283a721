package handlers

import (
	"net/http"
	"strconv"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/model"
)

// getShares returns fair shares, one association at a time.
func (h *handler) getShares(c *rest.Call, p *api.SharesParams) error {
	var users []string
	for _, user := range p.Users {
		// The controller selects users only by name.
		if number, err := strconv.ParseUint(user, 10, 32); err == nil {
			user = h.Users.User(uint32(number))
		}
		users = append(users, user)
	}
	body := api.SharesAnswer{Envelope: c.Envelope()}
	body.Shares = func(each func(*api.ShareRow) error) error {
		row := api.ShareRow{}
		totals, err := h.Controller.Shares(c.Context(), c.Credential(), p.Accounts, users, func(tres []string, s *model.Share) error {
			row.Share, row.TRES = s, tres
			return each(&row)
		})
		body.Total = totals.Shares
		return err
	}
	return rest.Send(c, http.StatusOK, api.Shares, &body)
}
