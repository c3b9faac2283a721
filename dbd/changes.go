package dbd

import (
	"context"
	"reflect"

	"schedrestd/dbd/catalog"
	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// Most changes require the level Operator. A change of clusters, of QOS, or of
// any user's level requires Administrator. The daemon answers when the change
// is part of the client's transaction. If a change fails, the transaction stays
// as it was.

// changeHandlers returns the handlers of the requests that change records.
func (d *Daemon) changeHandlers() map[message.Type]server.Handler {
	accounts, users, assocs := rule{"accounts", catalog.Operator}, rule{"users", catalog.Operator}, rule{"associations", catalog.Operator}
	clusters, qos := rule{"clusters", catalog.Administrator}, rule{"QOS", catalog.Administrator}
	return map[message.Type]server.Handler{
		message.AccountingAddAccounts: addHandler(d, accounts, func() listing[model.Account] { return new(message.Accounts) }, (*catalog.Catalog).AddAccounts),
		message.AccountingAddAssocs:   addHandler(d, assocs, func() listing[model.Association] { return new(message.Associations) }, (*catalog.Catalog).AddAssociations),
		message.AccountingAddClusters: addHandler(d, clusters, func() listing[model.Cluster] { return new(message.Clusters) }, (*catalog.Catalog).AddClusters),
		message.AccountingAddQOS:      addHandler(d, qos, func() listing[model.QOS] { return new(message.QOSList) }, (*catalog.Catalog).AddQOS),
		message.AccountingAddUsers:    addHandler(d, users, func() listing[model.User] { return new(message.Users) }, (*catalog.Catalog).AddUsers),

		message.AccountingAddAccountsTo: addToHandler(d, accounts, func(c *catalog.Catalog, m *message.AddAccountsTo) (string, error) {
			return c.AddAccountsTo(&m.AddAccountsWithAssocs)
		}),
		message.AccountingAddUsersTo: addToHandler(d, users, func(c *catalog.Catalog, m *message.AddUsersTo) (string, error) {
			return c.AddUsersTo(&m.AddUsersWithAssocs)
		}),
		message.AccountingAddCoords: addToHandler(d, accounts, func(c *catalog.Catalog, m *message.Coordinators) (string, error) {
			return "", c.AddCoordinators(m.Accounts, m.Users.Assoc.Users)
		}),

		message.AccountingModifyAccounts: namesHandler(d, accounts, func(c *catalog.Catalog, m *message.ModifyAccounts) ([]string, error) {
			return c.ModifyAccounts(&m.Filter.AccountFilter, &m.Record)
		}),
		message.AccountingModifyAssocs: namesHandler(d, assocs, func(c *catalog.Catalog, m *message.ModifyAssociations) ([]string, error) {
			return c.ModifyAssociations(&m.Filter.AssocFilter, &m.Record)
		}),
		message.AccountingModifyQOS: namesHandler(d, qos, func(c *catalog.Catalog, m *message.ModifyQOS) ([]string, error) {
			return c.ModifyQOS(&m.Filter.QOSFilter, &m.Record)
		}),
		message.AccountingModifyUsers: namesHandler(d, users, func(c *catalog.Catalog, m *message.ModifyUsers) ([]string, error) {
			return c.ModifyUsers(&m.Filter.UserFilter, &m.Record)
		}),
		message.AccountingRemoveAccounts: namesHandler(d, accounts, func(c *catalog.Catalog, m *message.GetAccounts) ([]string, error) {
			if reflect.DeepEqual(m.AccountFilter, model.AccountFilter{Flags: m.Flags}) {
				return nil, unselective()
			}
			return c.RemoveAccounts(&m.AccountFilter)
		}),
		message.AccountingRemoveAssocs: namesHandler(d, assocs, func(c *catalog.Catalog, m *message.GetAssociations) ([]string, error) {
			if reflect.DeepEqual(m.AssocFilter, model.AssocFilter{Flags: m.Flags}) {
				return nil, unselective()
			}
			return c.RemoveAssociations(&m.AssocFilter)
		}),
		message.AccountingRemoveClusters: namesHandler(d, clusters, func(c *catalog.Catalog, m *message.GetClusters) ([]string, error) {
			if len(m.ClusterFilter.Names) == 0 {
				return nil, unselective()
			}
			return c.RemoveClusters(&m.ClusterFilter), nil
		}),
		message.AccountingRemoveQOS: namesHandler(d, qos, func(c *catalog.Catalog, m *message.GetQOS) ([]string, error) {
			if len(m.IDs)+len(m.Names)+len(m.Descriptions) == 0 {
				return nil, unselective()
			}
			return c.RemoveQOS(&m.QOSFilter)
		}),
		message.AccountingRemoveUsers: namesHandler(d, users, func(c *catalog.Catalog, m *message.GetUsers) ([]string, error) {
			if len(m.Assoc.Users)+len(m.DefaultAccounts) == 0 {
				return nil, unselective()
			}
			return c.RemoveUsers(&m.UserFilter)
		}),
		message.AccountingRemoveCoords: namesHandler(d, accounts, func(c *catalog.Catalog, m *message.Coordinators) ([]string, error) {
			if len(m.Accounts)+len(m.Users.Assoc.Users) == 0 {
				return nil, unselective()
			}
			return c.RemoveCoordinators(m.Accounts, m.Users.Assoc.Users), nil
		}),
	}
}

// unselective returns the error for a request to remove everything, which is
// probably a mistake of the client.
func unselective() error {
	return errs.New(errs.Invalid, "the request selects all records; name those to remove")
}

// rule is a kind of change, and the level that it requires.
type rule struct {
	object string
	level  uint16
}

// authorize returns an error if the client's level is too low for the change. All
// users may choose their own default account.
func (d *Daemon) authorize(r *server.Request, required rule, body message.Body) error {
	level := d.adminLevel(r)
	switch m := body.(type) {
	case *message.ModifyUsers:
		own := model.BlankUser()
		own.DefaultAccount = m.Record.DefaultAccount
		if self := d.userName(r); level < required.level && self != "" && reflect.DeepEqual(m.Record, own) &&
			reflect.DeepEqual(m.Filter.Assoc.Users, []string{self}) {
			return nil
		}
		required = required.withLevel(m.Record.AdminLevel)
	case *message.AddUsersTo:
		required = required.withLevel(m.User.AdminLevel)
	case *message.Users:
		for i := range m.Records.List {
			required = required.withLevel(m.Records.List[i].AdminLevel)
		}
	}
	if level < required.level {
		return denied(required.object)
	}
	return nil
}

// withLevel returns the rule for a change that also gives a user this level.
func (required rule) withLevel(level uint16) rule {
	if level >= catalog.Operator {
		return rule{"the level of users", catalog.Administrator}
	}
	return required
}

// change calls do to make a change in the client's transaction, if the client
// may make it.
func (d *Daemon) change(ctx context.Context, r *server.Request, required rule, body message.Body, apply func(*catalog.Catalog) error) error {
	if err := r.Decode(body); err != nil {
		return err
	}
	if err := d.authorize(r, required, body); err != nil {
		return err
	}
	e, err := d.acquireEdit(ctx, r.Session)
	if err != nil {
		return err
	}
	d.editSlot.mu.Lock()
	base := e.catalog
	d.editSlot.mu.Unlock()
	if base == nil {
		base = d.store.Catalog() // the transaction was rolled back meanwhile: use returns the error
	}
	next := base.Clone()
	if err := apply(next); err != nil {
		return err
	}
	if err := next.Check(); err != nil {
		return err
	}
	d.editSlot.mu.Lock()
	defer d.editSlot.mu.Unlock()
	if err := d.editSlot.touch(e); err != nil {
		return err
	}
	e.catalog = next
	return nil
}

// addHandler returns the handler of a request that adds a list of records.
func addHandler[T any](d *Daemon, required rule, body func() listing[T], add func(*catalog.Catalog, []T) error) server.Handler {
	return func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
		m := body()
		if err := d.change(ctx, r, required, m, func(c *catalog.Catalog) error { return add(c, m.List().Records.List) }); err != nil {
			return 0, nil, err
		}
		return success(r)
	}
}

// addToHandler returns the handler of a request whose answer is a text that lists
// the added records.
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

// namesHandler returns the handler of a request whose answer lists the names of the
// records that were changed, or of the records that prevent the change.
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
		answer := &message.Names{Listed: listed(names)}
		switch {
		case err != nil && len(names) == 0:
			return 0, nil, err
		case err != nil:
			answer.Code, _ = fault.Number(err)
		case len(names) == 0:
			answer.Listed = listed([]string{})
			answer.Code = fault.NoChange
		}
		return message.AccountingGotList, answer, nil
	}
}
