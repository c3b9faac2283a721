package handlers

import (
	"cmp"

	"schedrestd/api"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// postUsers creates and changes users.
func (h *handler) postUsers(c *call, _ *api.NoParams) error {
	body, err := readBody(c, api.UsersBody)
	if err != nil {
		return err
	}
	return h.answerEdit(c, editEach(h, c, "users", body.Records, userName, c.putUser))
}

func userName(u *model.User) string { return u.Name }

// putUser creates a user or changes an existing one.
func (c *call) putUser(e model.Editor, u *model.User, at string) (changed bool, err error) {
	if err := checkName(u.Name, at); err != nil {
		return false, err
	}
	if c.skipDeleted(u.Flags, recordDeleted, at) {
		return false, nil
	}
	old, err := findOne[model.User](e, usersNamed(u.Name))
	if err != nil {
		return false, err
	}
	renamed := u.OldName != "" && u.OldName != u.Name
	names := []string{u.Name}
	if renamed {
		names = []string{u.OldName}
	}
	if err := c.checkAdministrators(e, names, u.AdminLevel, at); err != nil {
		return false, err
	}
	if renamed {
		return c.renameUser(e, u, old, at)
	}
	if old == nil {
		return true, c.addUser(e, u, at)
	}
	if len(u.WCKeys) > 0 {
		c.warn(at+"/wckeys", "has no effect on an existing user: POST wckeys/ creates workload keys")
	}
	record := model.BlankUser()
	if u.AdminLevel != 0 && u.AdminLevel != old.AdminLevel {
		record.AdminLevel, changed = u.AdminLevel, true
	}
	if u.DefaultAccount != "" && u.DefaultAccount != old.DefaultAccount {
		filter := model.AssocFilter{Users: []string{u.Name}, Accounts: []string{u.DefaultAccount}}
		const kind = "association of the user with account"
		if err := checkExists[model.Association](e, filter, invalidAccount, kind, u.DefaultAccount, at+"/default/account"); err != nil {
			return false, err
		}
		record.DefaultAccount, changed = u.DefaultAccount, true
	}
	if u.DefaultWCKey != "" && u.DefaultWCKey != old.DefaultWCKey {
		filter := model.WCKeyFilter{Users: []string{u.Name}, Names: []string{u.DefaultWCKey}}
		const kind = "workload key of the user"
		if err := checkExists[model.WCKey](e, filter, invalidWCKey, kind, u.DefaultWCKey, at+"/default/wckey"); err != nil {
			return false, err
		}
		record.DefaultWCKey, changed = u.DefaultWCKey, true
	}
	if u.DefaultQOSID != model.NoVal32 && u.DefaultQOSID != 0 && u.DefaultQOSID != old.DefaultQOSID {
		record.DefaultQOSID, changed = u.DefaultQOSID, true
	}
	if !changed {
		return false, nil
	}
	return c.modifyRecords(e, model.Modify[model.User]{Filter: usersNamed(u.Name), Record: record}, at)
}

// checkAdministrators refuses a request of an operator that changes users if one
// of them is an administrator or becomes one. Releases of Slurm before September
// 2026 let an operator do so, and the operator thus gained the rights of an
// administrator. Only these requests cost a lookup of the client's own record.
func (c *call) checkAdministrators(e model.Editor, names []string, level uint16, at string) error {
	const operator, administrator = 2, 3
	changes := level == administrator
	for _, name := range names {
		user, err := findOne[model.User](e, usersNamed(name))
		if err != nil {
			return err
		}
		changes = changes || user != nil && user.AdminLevel == administrator
	}
	if !changes {
		return nil
	}
	name := cmp.Or(c.client.ActAs, c.client.Claims.User)
	if name == "" && c.client.Local && c.h.Auth.User != nil {
		name = c.h.Auth.User()
	}
	if name == "" {
		return nil // the daemon decides
	}
	client, err := findOne[model.User](e, usersNamed(name))
	if err != nil || client == nil || client.AdminLevel != operator {
		return err
	}
	return errs.New(errs.Denied, "an operator may not change an administrator").WithSource(at)
}

func usersNamed(name string) model.UserFilter {
	return model.UserFilter{Assoc: model.AssocFilter{Users: []string{name}}}
}

// renameUser renames a user, and makes the other changes to the record.
func (c *call) renameUser(e model.Editor, u *model.User, existing *model.User, at string) (bool, error) {
	if existing != nil {
		return false, errs.New(errs.Conflict, "there is a user of that name already").WithSource(at + "/name").WithNumber(ambiguousModify)
	}
	if err := checkUser(e, u.OldName, at+"/old_name"); err != nil {
		return false, err
	}
	record := *u
	record.WCKeys, record.OldName = nil, ""
	if record.DefaultQOSID == 0 {
		record.DefaultQOSID = model.NoVal32
	}
	if u.DefaultAccount != "" {
		filter := model.AssocFilter{Users: []string{u.OldName}, Accounts: []string{u.DefaultAccount}}
		const kind = "association of the user with account"
		if err := checkExists[model.Association](e, filter, invalidAccount, kind, u.DefaultAccount, at+"/default/account"); err != nil {
			return false, err
		}
	}
	return c.modifyRecords(e, model.Modify[model.User]{Filter: usersNamed(u.OldName), Record: record}, at)
}

// adminNone is the level of a user without rights. Slurm's controller would
// keep 0, which means "not set", until it is started again.
const adminNone = 1

// addUser creates a user.
func (c *call) addUser(e model.Editor, u *model.User, at string) error {
	record := *u
	if record.AdminLevel == 0 {
		record.AdminLevel = adminNone
	}
	if record.DefaultAccount != "" {
		c.warn(at+"/default/account", "has no effect on a new user, who has no association: POST users_association/ makes both")
		record.DefaultAccount = ""
	}
	if u.DefaultQOSID == 0 {
		record.DefaultQOSID = model.NoVal32
	}
	record.WCKeys = nil
	for _, k := range u.WCKeys {
		if k.Name == "" || k.Cluster == "" {
			return errs.New(errs.Invalid, "a workload key needs a name and a cluster").WithSource(at + "/wckeys").WithNumber(missingField)
		}
		key := model.BlankWCKey()
		key.Name, key.Cluster, key.User = k.Name, k.Cluster, u.Name
		record.WCKeys = append(record.WCKeys, key)
	}
	if u.DefaultWCKey != "" && c.h.Cluster != "" {
		key := model.BlankWCKey()
		key.Name, key.Cluster, key.User, key.IsDefault = u.DefaultWCKey, c.h.Cluster, u.Name, model.Some[uint16](1)
		record.WCKeys = append(record.WCKeys, key)
	}
	return add[model.User](e, record, usersNamed(u.Name), at)
}

// modifyRecords changes existing records, and reports whether the daemon changed
// any. If it did not, modifyRecords adds a warning.
func (c *call) modifyRecords(e model.Editor, change any, at string) (bool, error) {
	names, err := e.Change(change)
	if err == nil && len(names) == 0 {
		c.warn(at, "the accounting daemon found nothing to change")
	}
	return len(names) > 0, err
}

// deleteUser removes a user.
func (h *handler) deleteUser(c *call, p *api.NamedUserParams) error {
	remove := func(e model.Editor) (any, error) {
		return model.Remove[model.User]{Filter: usersNamed(p.Name)}, c.checkAdministrators(e, []string{p.Name}, 0, "")
	}
	names, err := h.removeRecords(c, "user", p.Name, inPath+"name", remove, nil)
	return h.answerRemoval(c, api.UsersRemoved, names, err)
}
