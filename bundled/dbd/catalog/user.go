package catalog

import (
	"maps"
	"slices"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// Values of User.AdminLevel.
const (
	levelNotSet   uint16 = 0
	levelNone     uint16 = 1
	Operator      uint16 = 2
	Administrator uint16 = 3
)

// users returns the users that f selects.
func (b *Catalog) users(f *model.UserFilter) (list []*model.User) {
	byAssoc := f.Assoc
	byAssoc.Users = nil
	for _, u := range Sorted(b.Users) {
		if !Matches(f.Assoc.Users, u.Name) || f.AdminLevel != levelNotSet && f.AdminLevel != u.AdminLevel ||
			len(f.DefaultAccounts) > 0 && !model.HasName(f.DefaultAccounts, b.defaultAccount(u.Name)) ||
			len(f.DefaultWCKeys) > 0 {
			continue
		}
		if len(byAssoc.Accounts) > 0 || hasConditions(&byAssoc) {
			byAssoc.Users = []string{u.Name}
			if len(b.associations(&byAssoc)) == 0 {
				continue
			}
		}
		list = append(list, u)
	}
	return list
}

// defaultAccount returns the account of a user's default association. If the
// user has default associations in several clusters, defaultAccount uses the
// cluster whose name sorts first.
func (b *Catalog) defaultAccount(user string) string {
	for _, cluster := range slices.Sorted(maps.Keys(b.Clusters)) {
		if a := b.defaultAssociation(user, cluster); a != nil {
			return a.Account
		}
	}
	return ""
}

// ListUsers returns the users that f selects. It includes a user's associations
// and the accounts that the user coordinates only if f requests them.
func (b *Catalog) ListUsers(f *model.UserFilter) (list []model.User) {
	t := b.tree()
	for _, u := range b.users(f) {
		rec := *u
		rec.DefaultAccount, rec.WCKeys = b.defaultAccount(u.Name), []model.WCKey{}
		if f.WithAssocs {
			assocs := f.Assoc
			assocs.Users = []string{u.Name}
			rec.Associations = b.ListAssociations(&assocs)
		}
		if f.WithCoordinates {
			for _, a := range Sorted(b.Accounts) {
				for _, c := range b.coordinators(t, a) {
					if c.Name == u.Name {
						rec.Coordinates = append(rec.Coordinates, model.Coordinator{Name: a.Name, Direct: c.Direct})
					}
				}
			}
		}
		list = append(list, rec)
	}
	return list
}

// AddUsers adds the users in list, and the associations in their records.
func (b *Catalog) AddUsers(list []model.User) error {
	for i := range list {
		u := &list[i]
		if b.Users[b.user(u.Name)] != nil {
			return errs.New(errs.Conflict, "the user %s exists already", u.Name)
		}
		if err := b.addUser(u); err != nil {
			return err
		}
		for _, a := range u.Associations {
			a.User = u.Name
			if _, err := b.addAssociation(&a); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Catalog) addUser(u *model.User) error {
	if err := checkName("user", u.Name); err != nil {
		return err
	}
	if len(u.WCKeys) > 0 || u.DefaultWCKey != "" {
		return unsupported("workload keys")
	}
	rec := model.User{Name: u.Name, AdminLevel: u.AdminLevel, Flags: u.Flags &^ deleted}
	if rec.AdminLevel == levelNotSet || rec.AdminLevel > Administrator {
		rec.AdminLevel = levelNone
	}
	insert(&b.userKeys, b.Users, u.Name, &rec)
	return nil
}

// ModifyUsers changes the users that f selects. It sets the fields that are set
// in change, and returns the names of these users.
func (b *Catalog) ModifyUsers(f *model.UserFilter, change *model.User) (names []string, err error) {
	if change.DefaultWCKey != "" {
		return nil, unsupported("workload keys")
	}
	found := b.users(f)
	if change.Name != "" && len(found) > 1 {
		return nil, refuse(errs.Invalid, fault.OneAtATime, "only one user can get the name %s", change.Name)
	}
	for _, u := range found {
		rec := *u
		if level := change.AdminLevel; level != levelNotSet && level <= Administrator {
			rec.AdminLevel = level
		}
		if err := b.changeDefaults(rec.Name, change); err != nil {
			return nil, err
		}
		if change.Name != "" && change.Name != rec.Name {
			if err := b.renameUser(&rec, change.Name); err != nil {
				return nil, err
			}
		}
		b.Users[rec.Name] = &rec
		names = append(names, rec.Name)
	}
	return names, nil
}

// changeDefaults changes the default account and the default QOS of a user.
func (b *Catalog) changeDefaults(user string, change *model.User) error {
	id, changed := change.DefaultQOSID, false
	if id == 0 || id >= model.NoVal32 {
		id = 0
	}
	if id != 0 && !b.hasQOS(id) {
		return unknownQOS("of that number")
	}
	account := b.account(change.DefaultAccount)
	for _, old := range Sorted(b.Associations) {
		if old.User != user {
			continue
		}
		isNewDefault := account == old.Account && old.Partition == ""
		if !isNewDefault && id == 0 {
			continue
		}
		a := *b.Associations[old.ID] // setDefault may have replaced the record
		if isNewDefault {
			b.setDefault(&a)
			changed = true
		}
		if id != 0 {
			a.DefaultQOSID = id
		}
		b.Associations[a.ID] = &a
	}
	if change.DefaultAccount != "" && !changed {
		return refuse(errs.Invalid, fault.NoAssociation, "the user %s has no association with the account %.60q",
			user, change.DefaultAccount)
	}
	return nil
}

// renameUser changes the name of u, which is a copy of a user's record.
func (b *Catalog) renameUser(u *model.User, name string) error {
	if err := checkName("user", name); err != nil {
		return err
	}
	switch {
	case u.Name == root:
		return refuse(errs.Denied, fault.AccessDenied, "the user root can't be renamed")
	case b.user(name) != u.Name && b.Users[b.user(name)] != nil:
		return errs.New(errs.Conflict, "the user %s exists already", name)
	}
	for _, old := range b.Associations {
		if old.User == u.Name {
			a := *old
			a.User = name
			b.Associations[a.ID] = &a
		}
	}
	for _, old := range b.Accounts {
		i := slices.IndexFunc(old.Coordinators, func(c model.Coordinator) bool { return c.Name == u.Name })
		if i >= 0 {
			a := *old
			a.Coordinators = slices.Clone(a.Coordinators)
			a.Coordinators[i].Name = name
			b.Accounts[a.Name] = &a
		}
	}
	delete(b.Users, u.Name)
	u.Name = name
	return nil
}

// RemoveUsers removes the users that f selects, with their associations. It
// returns the names of these users.
func (b *Catalog) RemoveUsers(f *model.UserFilter) (names []string, err error) {
	for _, u := range b.users(f) {
		if u.Name == root {
			return nil, refuse(errs.Denied, fault.AccessDenied, "the user root can't be removed")
		}
		for id, a := range b.Associations {
			if a.User == u.Name {
				delete(b.Associations, id)
			}
		}
		delete(b.Users, u.Name)
		b.RemoveCoordinators(nil, []string{u.Name})
		names = append(names, u.Name)
	}
	return names, nil
}
