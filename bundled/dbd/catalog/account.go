package catalog

import (
	"slices"
	"strings"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// unknownAccount returns the error for an unknown account.
func unknownAccount(name string) error {
	return refuse(errs.Invalid, fault.InvalidAccount, "there is no account %.60q", name)
}

// accounts returns the accounts that f selects.
func (b *Catalog) accounts(f *model.AccountFilter) (list []*model.Account) {
	byAssoc := f.Assoc
	byAssoc.Accounts = nil
	for _, a := range Sorted(b.Accounts) {
		if !Matches(f.Assoc.Accounts, a.Name) || !Matches(f.Descriptions, a.Description.String()) ||
			!Matches(f.Organizations, a.Organization.String()) {
			continue
		}
		if hasConditions(&byAssoc) {
			byAssoc.Accounts = []string{a.Name}
			if len(b.associations(&byAssoc)) == 0 {
				continue
			}
		}
		list = append(list, a)
	}
	return list
}

// hasConditions reports whether f has a condition on clusters, users or
// partitions.
func hasConditions(f *model.AssocFilter) bool {
	return len(f.Clusters)+len(f.Users)+len(f.Partitions) > 0
}

// ListAccounts returns the accounts that f selects. It includes the
// associations and the coordinators of an account only if the flags of f
// request them.
func (b *Catalog) ListAccounts(f *model.AccountFilter) (list []model.Account) {
	t := b.tree()
	for _, a := range b.accounts(f) {
		rec := *a
		rec.Coordinators = nil
		if f.Flags&model.AccountWithCoordinators != 0 {
			rec.Coordinators = b.coordinators(t, a)
		}
		if f.Flags&model.AccountWithAssocs != 0 {
			assocs := f.Assoc
			assocs.Accounts = []string{a.Name}
			rec.Associations = b.ListAssociations(&assocs)
		}
		list = append(list, rec)
	}
	return list
}

// coordinators returns the coordinators of account a. It includes the
// coordinators of the accounts above a in any cluster.
func (b *Catalog) coordinators(t tree, a *model.Account) []model.Coordinator {
	list := slices.Clone(a.Coordinators)
	for _, assoc := range t {
		if assoc.Account != a.Name {
			continue
		}
		for ancestor, n := t.parent(assoc), 0; ancestor != nil && n <= maxDepth; ancestor, n = t.parent(ancestor), n+1 {
			account := b.Accounts[ancestor.Account]
			if account == nil {
				continue
			}
			for _, c := range account.Coordinators {
				if !slices.ContainsFunc(list, func(have model.Coordinator) bool { return have.Name == c.Name }) {
					list = append(list, model.Coordinator{Name: c.Name, Direct: model.Some[uint16](0)})
				}
			}
		}
	}
	slices.SortFunc(list, func(x, y model.Coordinator) int { return strings.Compare(x.Name, y.Name) })
	return list
}

// AddAccounts adds the accounts in list, and the associations in their records.
func (b *Catalog) AddAccounts(list []model.Account) error {
	for i := range list {
		a := &list[i]
		if b.Accounts[b.account(a.Name)] != nil {
			return errs.New(errs.Conflict, "the account %s exists already", a.Name)
		}
		if err := b.addAccount(a); err != nil {
			return err
		}
		for _, assoc := range a.Associations {
			assoc.Account = a.Name
			if _, err := b.addAssociation(&assoc); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Catalog) addAccount(a *model.Account) error {
	if err := checkName("account", a.Name); err != nil {
		return err
	}
	if err := checkTexts(a.Description, a.Organization); err != nil {
		return err
	}
	rec := model.Account{Name: a.Name, Description: stored(a.Description), Organization: stored(a.Organization), Flags: a.Flags &^ deleted}
	insert(&b.accountKeys, b.Accounts, a.Name, &rec)
	return nil
}

// deleted is the flag with which Slurm marks a record that was removed. This
// daemon does not keep such records.
const deleted uint32 = 1

// ModifyAccounts changes the accounts that f selects. It sets the fields that
// are set in change, and returns the names of these accounts.
func (b *Catalog) ModifyAccounts(f *model.AccountFilter, change *model.Account) (names []string, err error) {
	if err := checkTexts(change.Description, change.Organization); err != nil {
		return nil, err
	}
	for _, a := range b.accounts(f) {
		rec := *a
		if change.Description != "" {
			rec.Description = stored(change.Description)
		}
		if change.Organization != "" {
			rec.Organization = stored(change.Organization)
		}
		rec.Flags |= change.Flags &^ deleted
		b.Accounts[rec.Name] = &rec
		names = append(names, rec.Name)
	}
	return names, nil
}

// RemoveAccounts removes the accounts that f selects, the associations of these
// accounts, and all associations below those. It returns the names of the
// removed accounts. It fails in the same cases as RemoveAssociations.
func (b *Catalog) RemoveAccounts(f *model.AccountFilter) (names []string, err error) {
	removals := map[uint32]*model.Association{}
	for _, account := range b.accounts(f) {
		if account.Name == root {
			return nil, refuse(errs.Denied, fault.AccessDenied, "the account root can't be removed")
		}
		names = append(names, account.Name)
		for _, a := range b.associations(&model.AssocFilter{Accounts: []string{account.Name}}) {
			removals[a.ID] = a
			for _, descendant := range b.descendants(a) {
				removals[descendant.ID] = descendant
			}
		}
	}
	if blocked, err := b.dropAssociations(removals); err != nil {
		return blocked, err
	}
	for _, name := range names {
		delete(b.Accounts, name)
	}
	return names, nil
}

// AddCoordinators makes users coordinators of accounts.
func (b *Catalog) AddCoordinators(accounts, users []string) error {
	users = slices.Clone(users)
	for i, user := range users {
		users[i] = b.user(user)
		if b.Users[users[i]] == nil {
			return refuse(errs.Invalid, fault.UnknownUser, "there is no user %.60q", user)
		}
	}
	for _, name := range accounts {
		name = b.account(name)
		a := b.Accounts[name]
		if a == nil {
			return unknownAccount(name)
		}
		rec := *a
		rec.Coordinators = slices.Clone(a.Coordinators)
		for _, user := range users {
			if !slices.ContainsFunc(rec.Coordinators, func(c model.Coordinator) bool { return c.Name == user }) {
				rec.Coordinators = append(rec.Coordinators, model.Coordinator{Name: user, Direct: model.Some[uint16](1)})
			}
		}
		b.Accounts[name] = &rec
	}
	return nil
}

// RemoveCoordinators removes the given users from the coordinators of the given
// accounts. An empty list of accounts means all accounts, and an empty list of
// users means all users. RemoveCoordinators returns the removed pairs of user
// and account.
func (b *Catalog) RemoveCoordinators(accounts, users []string) (names []string) {
	for _, a := range Sorted(b.Accounts) {
		if !Matches(accounts, a.Name) {
			continue
		}
		rec := *a
		rec.Coordinators = nil
		for _, c := range a.Coordinators {
			if Matches(users, c.Name) {
				names = append(names, "U = "+c.Name+" A = "+a.Name)
			} else {
				rec.Coordinators = append(rec.Coordinators, c)
			}
		}
		if len(rec.Coordinators) != len(a.Coordinators) {
			b.Accounts[a.Name] = &rec
		}
	}
	return names
}
