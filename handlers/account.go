package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/model"
)

func (h *handler) getAccounts(c *rest.Call, p *api.AccountsParams) error {
	p.Flags |= alwaysShown
	return h.sendAccounts(c, recordsOf[model.Account](h, c, p.AccountFilter))
}

// alwaysShown selects what answers with accounts always show: the coordinators.
// A client that sends such an answer back would remove them otherwise, because
// an empty list of coordinators in a change removes all.
const alwaysShown = model.AccountWithCoordinators

func (h *handler) getAccount(c *rest.Call, p *api.AccountParams) error {
	filter := accountsNamed(p.Name)
	filter.Flags |= alwaysShown
	for bit, on := range map[model.AccountFilterFlags]bool{model.AccountWithAssocs: p.WithAssocs, model.AccountWithDeleted: p.WithDeleted} {
		if on {
			filter.Flags |= bit
		}
	}
	account, err := findFirst("account", p.Name, recordsOf[model.Account](h, c, filter),
		func(a *model.Account) bool { return a.Name == p.Name })
	if err != nil {
		return err
	}
	return h.sendAccounts(c, func(each func(*model.Account) error) error { return each(account) })
}

func (h *handler) sendAccounts(c *rest.Call, list func(each func(*model.Account) error) error) error {
	return rest.Send(c, http.StatusOK, api.Accounts, &api.AccountsAnswer{Accounts: list, Envelope: c.Envelope()})
}
