package handlers

import (
	"fmt"
	"net/http"
	"slices"

	"schedrestd/api"
	"schedrestd/api/schema"
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
	account, err := findNamed("account", p.Name, recordsOf[model.Account](h, c, filter), accountName)
	if err != nil {
		return err
	}
	return h.sendAccounts(c, schema.One(account))
}

func (h *handler) sendAccounts(c *rest.Call, list schema.Stream[model.Account]) error {
	body := api.AccountsAnswer{Envelope: c.Envelope()}
	body.Accounts = rest.Paged(c, &body.Envelope, func(a *model.Account) string { return a.Name }, list)
	return rest.Send(c, http.StatusOK, api.Accounts, &body)
}

// postAccounts creates and changes accounts.
func (h *handler) postAccounts(c *rest.Call, _ *api.NoParams) error {
	body, err := rest.ReadBody(c, api.AccountsBody)
	if err != nil {
		return err
	}
	return h.answerEdit(c, editEach(h, c, accountKind, body.Records))
}

var accountKind = kind[model.Account]{list: "accounts", noun: "account", name: accountName, put: putAccount, path: pathOf("account/", accountName)}

func accountName(a *model.Account) string { return a.Name }

// putAccount creates an account or changes an existing one.
func putAccount(tx *transaction, a *model.Account, at string) (changed bool, err error) {
	if err := checkName(a.Name, at); err != nil {
		return false, err
	}
	if skipDeleted(tx, a.Flags, recordDeleted, at) {
		return false, nil
	}
	filter := accountsNamed(a.Name)
	filter.Flags = model.AccountWithCoordinators
	old, err := findOld[model.Account](tx, filter)
	if err != nil {
		return false, err
	}
	record := model.Account{Name: a.Name, Description: a.Description, Organization: a.Organization, Flags: a.Flags}
	var current []model.Coordinator
	switch {
	case old == nil:
		if err := checkNew(at, "name", a.Name); err != nil {
			return false, err
		}
		for _, field := range []struct {
			name  string
			value *model.Text
		}{{"description", &record.Description}, {"organization", &record.Organization}} {
			if field.value.Empty() {
				*field.value = model.Text(a.Name)
				tx.call.Warn(at+"/"+field.name, "a new account needs this field: it is the name of the account")
			}
		}
		changed = true
		err = add[model.Account](tx, record, accountsNamed(a.Name), at)
	case narrowAccount(&record, old):
		current, changed = old.Coordinators, true
		_, err = tx.Change(model.Modify[model.Account]{Filter: accountsNamed(a.Name), Record: record})
	default:
		current = old.Coordinators
	}
	if err != nil || a.Coordinators == nil {
		return changed, err
	}
	name := a.Name
	if old != nil {
		name = old.Name
	}
	coordinatorsChanged, err := changeCoordinators(tx, name, a.Coordinators, current, at)
	return changed || coordinatorsChanged, err
}

// narrowAccount removes from a change of an account what the record old has
// already. It reports whether anything is left.
func narrowAccount(change, old *model.Account) bool {
	change.Name = ""
	if !change.Description.Changes(old.Description) {
		change.Description = ""
	}
	if !change.Organization.Changes(old.Organization) {
		change.Organization = ""
	}
	if change.Flags&^old.Flags == 0 {
		change.Flags = 0
	}
	return change.Description != "" || change.Organization != "" || change.Flags != 0
}

// changeCoordinators changes an account's coordinators from current to wanted.
// It does not remove coordinators that the account inherits from a parent
// account.
func changeCoordinators(e model.Editor, account string, wanted, current []model.Coordinator, at string) (changed bool, err error) {
	var names, kept, add, remove []string
	for _, o := range current {
		names = append(names, o.Name)
	}
	for i, o := range wanted {
		if o.Name == "" {
			continue
		}
		if j := model.IndexName(names, o.Name); j >= 0 {
			kept = append(kept, names[j])
			continue
		}
		source := fmt.Sprintf("%s/coordinators/%d", at, i)
		user, err := existingUser(e, o.Name, source)
		if err != nil {
			return false, err
		}
		if slices.Contains(names, user) {
			kept = append(kept, user)
		} else if !slices.Contains(add, user) {
			add = append(add, user)
		}
	}
	for _, o := range current {
		if o.Direct.Or(0) != 0 && !slices.Contains(kept, o.Name) {
			remove = append(remove, o.Name)
		}
	}
	if len(add) > 0 {
		if _, err := e.Change(model.AddCoordinators{Accounts: []string{account}, Users: add}); err != nil {
			return false, err
		}
	}
	if len(remove) > 0 {
		if _, err := e.Change(model.RemoveCoordinators{Accounts: []string{account}, Users: remove}); err != nil {
			return false, err
		}
	}
	return len(add)+len(remove) > 0, nil
}

func (h *handler) deleteAccount(c *rest.Call, p *api.NamedAccountParams) error {
	remove := removal(model.Remove[model.Account]{Filter: accountsNamed(p.Name)})
	names, err := h.removeRecords(c, "account", p.Name, rest.InPath+"account_name", remove, nil)
	return h.answerRemoval(c, api.AccountsRemoved, names, err)
}
