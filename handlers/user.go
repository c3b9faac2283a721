package handlers

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

func (h *handler) getUsers(c *rest.Call, p *api.UsersParams) error {
	list := recordsOf[model.User](h, c, p.UserFilter)
	if p.WithoutDefaults {
		withDefaults := list
		list = func(each func(*model.User) error) error {
			return withDefaults(func(u *model.User) error {
				u.DefaultAccount, u.DefaultWCKey = "", ""
				return each(u)
			})
		}
	}
	return h.sendUsers(c, list)
}

func (h *handler) getUser(c *rest.Call, p *api.UsersParams) error {
	p.Assoc.Users = []string{p.Name}
	user, err := findNamed("user", p.Name, recordsOf[model.User](h, c, p.UserFilter), userName)
	if err != nil {
		return err
	}
	return h.sendUsers(c, schema.One(user))
}

func (h *handler) sendUsers(c *rest.Call, list schema.Stream[model.User]) error {
	body := api.UsersAnswer{Envelope: c.Envelope()}
	body.Users = rest.Paged(c, &body.Envelope, userName, list)
	return rest.Send(c, http.StatusOK, api.UserList, &body)
}

// postUsers creates and changes users.
func (h *handler) postUsers(c *rest.Call, _ *api.NoParams) error {
	body, err := rest.ReadBody(c, api.UsersBody)
	if err != nil {
		return err
	}
	return h.answerEdit(c, editEach(h, c, userKind, body.Records))
}

var userKind = kind[model.User]{list: "users", noun: "user", name: userName, put: putUser, path: pathOf("user/", userName)}

func userName(u *model.User) string { return u.Name }

// putUser creates a user or changes an existing one.
func putUser(tx *transaction, u *model.User, at string) (changed bool, err error) {
	if err := checkName(u.Name, at); err != nil {
		return false, err
	}
	if skipDeleted(tx, u.Flags, recordDeleted, at) {
		return false, nil
	}
	u.DefaultWCKey = strings.TrimPrefix(u.DefaultWCKey, "*") // slurmdbd may also show its own key *k for the default k
	old, err := findOld[model.User](tx, shownAs(u, u.Name))
	if err != nil {
		return false, err
	}
	if u.OldName != "" && u.OldName != u.Name {
		if err := checkAdministrators(tx, []string{u.OldName}, u.AdminLevel, at); err != nil {
			return false, err
		}
		return renameUser(tx, u, old, at)
	}
	if old == nil {
		if err := checkAdministrators(tx, nil, u.AdminLevel, at); err != nil {
			return false, err
		}
		return true, addUser(tx, u, at)
	}
	if len(u.WCKeys) > 0 {
		tx.call.Warn(at+"/wckeys", "has no effect on an existing user: POST wckeys/ creates workload keys")
	}
	// Each change has a record, and so a message, of its own: slurmdbd makes it with
	// statements of its own. If the database forgot the first ones, only another
	// message would show it.
	var records []model.User
	add := func(set func(*model.User)) {
		record := model.BlankUser()
		set(&record)
		records = append(records, record)
	}
	if u.AdminLevel != 0 && u.AdminLevel != old.AdminLevel {
		add(func(r *model.User) { r.AdminLevel = u.AdminLevel })
	}
	if u.DefaultAccount != "" && !model.SameName(u.DefaultAccount, old.DefaultAccount) {
		account, err := accountOfUser(tx, u.Name, u.DefaultAccount, at+"/default/account")
		if err != nil {
			return false, err
		}
		add(func(r *model.User) { r.DefaultAccount = account })
	}
	if u.DefaultWCKey != "" && !model.SameName(u.DefaultWCKey, strings.TrimPrefix(old.DefaultWCKey, "*")) {
		key, err := wckeyOfUser(tx, u.Name, u.DefaultWCKey, at+"/default/wckey")
		if err != nil {
			return false, err
		}
		add(func(r *model.User) { r.DefaultWCKey = key })
	}
	if u.DefaultQOSID != model.NoVal32 && u.DefaultQOSID != 0 && u.DefaultQOSID != old.DefaultQOSID {
		add(func(r *model.User) { r.DefaultQOSID = u.DefaultQOSID })
	}
	if len(records) > 0 {
		if err := checkAdministrators(tx, []string{u.Name}, u.AdminLevel, at); err != nil {
			return false, err
		}
	}
	for _, record := range records {
		done, err := modifyRecords(tx, model.Modify[model.User]{Filter: usersNamed(u.Name), Record: record}, at)
		if err != nil {
			return false, err
		}
		changed = changed || done
	}
	return changed, nil
}

// accountOfUser returns the name of an account with which a user is associated,
// as it is stored.
func accountOfUser(tx *transaction, user, account, source string) (string, error) {
	filter := model.AssocFilter{Users: []string{user}, Accounts: []string{account}}
	stored, err := storedName[model.Association](tx, filter, func(a *model.Association) string { return a.Account }, account)
	return onlyExisting(stored, err, slurmerror.InvalidAccount, "association of the user with account", account, source)
}

// wckeyOfUser returns the name of a user's workload key, as it is stored.
func wckeyOfUser(tx *transaction, user, key, source string) (string, error) {
	filter := model.WCKeyFilter{Users: []string{user}, Names: []string{key}}
	stored, err := storedName[model.WCKey](tx, filter, func(k *model.WCKey) string { return k.Name }, key)
	return onlyExisting(stored, err, slurmerror.InvalidWCKey, "workload key of the user", key, source)
}

// shownAs returns a filter for the user with this name. The record that it
// selects has the defaults that answers show, if the change u sets some. The
// daemon takes the defaults of all clusters from associations and workload keys.
// With different ones in several clusters, to send the default that an answer
// shows would give it to all of them.
func shownAs(u *model.User, name string) model.UserFilter {
	filter := usersNamed(name)
	filter.WithAssocs = u.DefaultAccount != "" || u.DefaultQOSID != model.NoVal32 && u.DefaultQOSID != 0
	filter.WithWCKeys = u.DefaultWCKey != ""
	return filter
}

// checkAdministrators refuses a request of an operator that changes users if one
// of them is an administrator or becomes one. Releases of Slurm before September
// 2026 let an operator do so, and the operator thus gained the rights of an
// administrator. Only these requests cost a lookup of the client's own record.
func checkAdministrators(tx *transaction, names []string, level uint16, at string) error {
	changes := level == administrator
	for _, name := range names {
		user, err := findOne[model.User](tx, usersNamed(name))
		if err != nil {
			return err
		}
		changes = changes || user != nil && user.AdminLevel == administrator
	}
	if !changes {
		return nil
	}
	client, err := clientRecord(tx)
	if err != nil || client == nil || client.AdminLevel != operator {
		return err
	}
	return errs.New(errs.Denied, "an operator may not change an administrator").WithSource(at).WithNumber(slurmerror.AccessDenied)
}

// clientRecord returns the record of the user who sent the request, with the
// accounts that the user coordinates. It returns nil if there is none, or if only
// the daemon knows the user.
func clientRecord(tx *transaction) (*model.User, error) {
	name := cmp.Or(tx.call.Client().ActAs, tx.call.Client().Claims.User)
	if name == "" && tx.call.Client().Local && tx.h.Auth.User != nil {
		name = tx.h.Auth.User()
	}
	if name == "" {
		return nil, nil
	}
	filter := usersNamed(name)
	filter.WithCoordinates = true
	return findOne[model.User](tx, filter)
}

// hasNoLevel reports whether the user who sent the request is certainly no
// operator. Such a user may be the coordinator of accounts.
func hasNoLevel(tx *transaction) (bool, error) {
	client, err := clientRecord(tx)
	return client != nil && client.AdminLevel < operator, err
}

// renameUser renames a user, and makes the other changes to the record.
func renameUser(tx *transaction, u *model.User, existing *model.User, at string) (bool, error) {
	oldName, err := existingUser(tx, u.OldName, at+"/old_name")
	if existing != nil && existing.Name != oldName {
		return false, errs.New(errs.Conflict, "there is a user of that name already").WithSource(at + "/name").WithNumber(slurmerror.AmbiguousModify)
	}
	if err != nil {
		return false, err
	}
	old, err := findOne[model.User](tx, shownAs(u, u.OldName))
	if err != nil || old == nil {
		return false, err
	}
	if err := checkNew(at, "name", u.Name); err != nil {
		return false, err
	}
	record := *u
	record.WCKeys, record.OldName = nil, ""
	if record.AdminLevel == old.AdminLevel {
		record.AdminLevel = 0
	}
	if model.SameName(record.DefaultAccount, old.DefaultAccount) {
		record.DefaultAccount = ""
	}
	if model.SameName(record.DefaultWCKey, old.DefaultWCKey) {
		record.DefaultWCKey = ""
	}
	if record.DefaultQOSID == 0 || record.DefaultQOSID == old.DefaultQOSID {
		record.DefaultQOSID = model.NoVal32
	}
	if record.DefaultAccount != "" {
		if record.DefaultAccount, err = accountOfUser(tx, u.OldName, u.DefaultAccount, at+"/default/account"); err != nil {
			return false, err
		}
	}
	return modifyRecords(tx, model.Modify[model.User]{Filter: usersNamed(u.OldName), Record: record}, at)
}

// Levels of users. 0 means "not set".
const (
	adminNone     = 1
	operator      = 2
	administrator = 3
)

// addUser creates a user. Without a level, the user has none: Slurm's controller
// would keep 0 until it is started again. But slurmdbd lets only operators send a
// level, and lets coordinators create users, so for them the level stays 0.
func addUser(tx *transaction, u *model.User, at string) error {
	if err := checkNew(at, "name", u.Name); err != nil {
		return err
	}
	record := *u
	if record.AdminLevel == 0 {
		coordinates, err := hasNoLevel(tx)
		if err != nil {
			return err
		}
		if !coordinates {
			record.AdminLevel = adminNone
		}
	}
	if record.DefaultAccount != "" {
		tx.call.Warn(at+"/default/account", "has no effect on a new user, who has no association: POST users_association/ makes both")
		record.DefaultAccount = ""
	}
	if u.DefaultQOSID == 0 {
		record.DefaultQOSID = model.NoVal32
	}
	record.WCKeys = nil
	for i, k := range u.WCKeys {
		if skipOwnWCKey(tx, &k, u.Name, fmt.Sprintf("%s/wckeys/%d", at, i)) {
			continue
		}
		if k.Name == "" || k.Cluster == "" {
			return errs.New(errs.Invalid, "a workload key needs a name and a cluster").WithSource(at + "/wckeys").WithNumber(slurmerror.MissingField)
		}
		key := model.BlankWCKey()
		key.User = u.Name
		var err error
		if key.Name, err = tx.storedWCKey(k.Name); err != nil {
			return err
		}
		if key.Cluster, err = tx.storedCluster(k.Cluster); err != nil {
			return err
		}
		record.WCKeys = append(record.WCKeys, key)
	}
	if u.DefaultWCKey != "" && tx.h.Cluster != "" {
		name, err := tx.storedWCKey(u.DefaultWCKey)
		if err != nil {
			return err
		}
		record.DefaultWCKey = name
		key := model.BlankWCKey()
		key.Name, key.Cluster, key.User, key.IsDefault = name, tx.h.Cluster, u.Name, model.Some[uint16](1)
		record.WCKeys = append(record.WCKeys, key)
	}
	record.WCKeys = tx.withoutPlanned(record.WCKeys)
	return add[model.User](tx, record, usersNamed(u.Name), at)
}

func (h *handler) deleteUser(c *rest.Call, p *api.NamedUserParams) error {
	remove := func(tx *transaction) (any, error) {
		return model.Remove[model.User]{Filter: usersNamed(p.Name)}, checkAdministrators(tx, []string{p.Name}, 0, "")
	}
	names, err := h.removeRecords(c, "user", p.Name, rest.InPath+"name", remove, nil)
	return h.answerRemoval(c, api.UsersRemoved, names, err)
}
