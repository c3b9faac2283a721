package dbd

import (
	"context"
	"reflect"

	"schedrestd/bundled/dbd/catalog"
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// Most changes require that the client's level is Operator or higher. The
// following changes require Administrator, because otherwise an Operator could
// become Administrator:
//
//   - adding, changing or removing a cluster or QOS
//   - giving a level to a user
//   - changing or removing a user who has a level
//   - renaming any user
//
// The daemon sends the answer as soon as the client's transaction contains the
// change. If a change fails, the transaction contains no part of it.

// changeHandlers returns the handlers of the requests that change records.
func (d *Daemon) changeHandlers() map[message.Type]server.Handler {
	var (
		accounts = rule{"accounts", catalog.Operator}
		users    = rule{"users", catalog.Operator}
		assocs   = rule{"associations", catalog.Operator}
		clusters = rule{"clusters", catalog.Administrator}
		qos      = rule{"QOS", catalog.Administrator}
	)
	return map[message.Type]server.Handler{
		message.AccountingAddAccounts: addHandler(d, accounts, accountList, (*catalog.Catalog).AddAccounts),
		message.AccountingAddAssocs:   addHandler(d, assocs, associationList, (*catalog.Catalog).AddAssociations),
		message.AccountingAddClusters: addHandler(d, clusters, clusterList, (*catalog.Catalog).AddClusters),
		message.AccountingAddQOS:      addHandler(d, qos, qosList, (*catalog.Catalog).AddQOS),
		message.AccountingAddUsers:    addHandler(d, users, userList, (*catalog.Catalog).AddUsers),

		message.AccountingAddAccountsTo: addToHandler(d, accounts,
			func(c *catalog.Catalog, m *message.AddAccountsTo) (string, error) {
				return c.AddAccountsTo(&m.AddAccountsWithAssocs)
			}),
		message.AccountingAddUsersTo: addToHandler(d, users,
			func(c *catalog.Catalog, m *message.AddUsersTo) (string, error) {
				return c.AddUsersTo(&m.AddUsersWithAssocs)
			}),
		message.AccountingAddCoords: addToHandler(d, accounts,
			func(c *catalog.Catalog, m *message.Coordinators) (string, error) {
				return "", c.AddCoordinators(m.Accounts, m.Users.Assoc.Users)
			}),

		message.AccountingModifyAccounts: namesHandler(d, accounts,
			func(c *catalog.Catalog, m *message.ModifyAccounts) ([]string, error) {
				return c.ModifyAccounts(&m.Filter.AccountFilter, &m.Record)
			}),
		message.AccountingModifyAssocs: namesHandler(d, assocs,
			func(c *catalog.Catalog, m *message.ModifyAssociations) ([]string, error) {
				return c.ModifyAssociations(&m.Filter.AssocFilter, &m.Record)
			}),
		message.AccountingModifyQOS: namesHandler(d, qos,
			func(c *catalog.Catalog, m *message.ModifyQOS) ([]string, error) {
				return c.ModifyQOS(&m.Filter.QOSFilter, &m.Record)
			}),
		message.AccountingModifyUsers: namesHandler(d, users,
			func(c *catalog.Catalog, m *message.ModifyUsers) ([]string, error) {
				return c.ModifyUsers(&m.Filter.UserFilter, &m.Record)
			}),
		message.AccountingRemoveAccounts: namesHandler(d, accounts,
			func(c *catalog.Catalog, m *message.GetAccounts) ([]string, error) {
				if reflect.DeepEqual(m.AccountFilter, model.AccountFilter{Flags: m.Flags}) {
					return nil, unselective()
				}
				return c.RemoveAccounts(&m.AccountFilter)
			}),
		message.AccountingRemoveAssocs: namesHandler(d, assocs,
			func(c *catalog.Catalog, m *message.GetAssociations) ([]string, error) {
				if reflect.DeepEqual(m.AssocFilter, model.AssocFilter{Flags: m.Flags}) {
					return nil, unselective()
				}
				return c.RemoveAssociations(&m.AssocFilter)
			}),
		message.AccountingRemoveClusters: namesHandler(d, clusters,
			func(c *catalog.Catalog, m *message.GetClusters) ([]string, error) {
				if len(m.ClusterFilter.Names) == 0 {
					return nil, unselective()
				}
				return c.RemoveClusters(&m.ClusterFilter), nil
			}),
		message.AccountingRemoveQOS: namesHandler(d, qos,
			func(c *catalog.Catalog, m *message.GetQOS) ([]string, error) {
				if len(m.IDs)+len(m.Names)+len(m.Descriptions) == 0 {
					return nil, unselective()
				}
				return c.RemoveQOS(&m.QOSFilter)
			}),
		message.AccountingRemoveUsers: namesHandler(d, users,
			func(c *catalog.Catalog, m *message.GetUsers) ([]string, error) {
				if len(m.Assoc.Users)+len(m.DefaultAccounts) == 0 {
					return nil, unselective()
				}
				return c.RemoveUsers(&m.UserFilter)
			}),
		message.AccountingRemoveCoords: namesHandler(d, accounts,
			func(c *catalog.Catalog, m *message.Coordinators) ([]string, error) {
				if len(m.Accounts)+len(m.Users.Assoc.Users) == 0 {
					return nil, unselective()
				}
				return c.RemoveCoordinators(m.Accounts, m.Users.Assoc.Users), nil
			}),
	}
}

// unselective returns the error for a request that would remove all records.
// Such a request is probably a mistake.
func unselective() error {
	return errs.New(errs.Invalid, "the request selects all records; name those to remove")
}

// A rule names the kind of records that a request changes, and the level that
// the client must have to change them.
type rule struct {
	object string
	level  uint16
}

// authorize returns an error if the client's level is too low for the request.
// All users may choose their own default account. Only an Administrator may
// rename a user: the record keeps its level, so a person with the new name
// could gain that level.
func (d *Daemon) authorize(r *server.Request, level uint16, required rule, body message.Body) error {
	if m, ok := body.(*message.ModifyUsers); ok {
		own := model.BlankUser()
		own.DefaultAccount = m.Record.DefaultAccount
		if self := d.userName(r); level < required.level && self != "" && reflect.DeepEqual(m.Record, own) &&
			reflect.DeepEqual(m.Filter.Assoc.Users, []string{self}) {
			return nil
		}
		if m.Record.Name != "" {
			required = rule{"the names of users", catalog.Administrator}
		}
	}
	if level < required.level {
		return denied(required.object)
	}
	return nil
}

// changesLevels reports whether old and next contain different Operators or
// different Administrators. They do if a level was granted or withdrawn, or if
// a user with a level was removed or renamed.
func changesLevels(old, next *catalog.Catalog) bool {
	differs := func(from, to map[string]*model.User) bool {
		for name, u := range from {
			if u.AdminLevel >= catalog.Operator && (to[name] == nil || to[name].AdminLevel != u.AdminLevel) {
				return true
			}
		}
		return false
	}
	return differs(old.Users, next.Users) || differs(next.Users, old.Users)
}

// change calls apply to edit a copy of the records in the client's transaction.
// If the client may make these changes and no check fails, the copy replaces
// the records in the transaction.
func (d *Daemon) change(ctx context.Context, r *server.Request, required rule, body message.Body,
	apply func(*catalog.Catalog) error) error {
	if err := r.Decode(body); err != nil {
		return err
	}
	level := d.adminLevel(r)
	if err := d.authorize(r, level, required, body); err != nil {
		return err
	}
	e, err := d.acquireEdit(ctx, r.Session, r.Identity.UID)
	if err != nil {
		return err
	}
	d.editSlot.mu.Lock()
	base := e.catalog
	d.editSlot.mu.Unlock()
	if base == nil {
		base = d.store.Catalog() // the transaction was rolled back, so touch will return an error
	}
	next := base.Clone()
	if err := apply(next); err != nil {
		return err
	}
	if level < catalog.Administrator && changesLevels(base, next) {
		return denied("the level of users")
	}
	if err := next.Check(); err != nil {
		return err
	}
	d.editSlot.mu.Lock()
	defer d.editSlot.mu.Unlock()
	if err := d.editSlot.touchLocked(e); err != nil {
		return err
	}
	e.catalog = next
	return nil
}

// addHandler returns the handler for a request that adds a list of records.
func addHandler[T any](d *Daemon, required rule, body func() listing[T], add func(*catalog.Catalog, []T) error) server.Handler {
	return func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
		m := body()
		err := d.change(ctx, r, required, m, func(c *catalog.Catalog) error { return add(c, m.List().Records.List) })
		if err != nil {
			return 0, nil, err
		}
		return success(r)
	}
}

// addToHandler returns the handler for a request whose answer is a string that
// lists the added records.
func addToHandler[M any, B interface {
	*M
	message.Body
}](d *Daemon, required rule, add func(*catalog.Catalog, B) (string, error)) server.Handler {
	return func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
		m, added := B(new(M)), ""
		err := d.change(ctx, r, required, m, func(c *catalog.Catalog) (err error) {
			added, err = add(c, m)
			return err
		})
		if err != nil {
			return 0, nil, err
		}
		answer := &message.PersistRC{Comment: added, Info: uint16(r.Type)}
		if added == "" && r.Type != message.AccountingAddCoords {
			answer.Code = fault.NoChange
		}
		return message.AccountingRC, answer, nil
	}
}

// namesHandler returns the handler for a request whose answer is a list of
// names. The list names the records that were changed or, if the change fails,
// the records that prevent it.
func namesHandler[M any, B interface {
	*M
	message.Body
}](d *Daemon, required rule, apply func(*catalog.Catalog, B) ([]string, error)) server.Handler {
	return func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
		m := B(new(M))
		var names []string
		err := d.change(ctx, r, required, m, func(c *catalog.Catalog) (err error) {
			names, err = apply(c, m)
			return err
		})
		answer := &message.Names{ListResponse: listResponse(names)}
		switch {
		case err != nil && len(names) == 0:
			return 0, nil, err
		case err != nil:
			answer.Code, _ = fault.Number(err)
		case len(names) == 0:
			answer.ListResponse = listResponse([]string{})
			answer.Code = fault.NoChange
		}
		return message.AccountingGotList, answer, nil
	}
}
