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

// changes returns the handlers of the requests that change records.
func (d *Daemon) changes() map[message.Type]server.Handler {
	accounts, users, assocs := rule{"accounts", catalog.Operator}, rule{"users", catalog.Operator}, rule{"associations", catalog.Operator}
	clusters, qos := rule{"clusters", catalog.Administrator}, rule{"QOS", catalog.Administrator}
	return map[message.Type]server.Handler{
		message.AccountingAddAccounts: adding(d, accounts, func() listing[model.Account] { return new(message.Accounts) }, (*catalog.Catalog).AddAccounts),
		message.AccountingAddAssocs:   adding(d, assocs, func() listing[model.Association] { return new(message.Associations) }, (*catalog.Catalog).AddAssociations),
		message.AccountingAddClusters: adding(d, clusters, func() listing[model.Cluster] { return new(message.Clusters) }, (*catalog.Catalog).AddClusters),
		message.AccountingAddQOS:      adding(d, qos, func() listing[model.QOS] { return new(message.QOSList) }, (*catalog.Catalog).AddQOS),
		message.AccountingAddUsers:    adding(d, users, func() listing[model.User] { return new(message.Users) }, (*catalog.Catalog).AddUsers),

		message.AccountingAddAccountsTo: addingTo(d, accounts, func(b *catalog.Catalog, m *message.AddAccountsTo) (string, error) {
			return b.AddAccountsTo(&m.AddAccountsTo)
		}),
		message.AccountingAddUsersTo: addingTo(d, users, func(b *catalog.Catalog, m *message.AddUsersTo) (string, error) { return b.AddUsersTo(&m.AddUsersTo) }),
		message.AccountingAddCoords: addingTo(d, accounts, func(b *catalog.Catalog, m *message.Coordinators) (string, error) {
			return "", b.AddCoordinators(m.Accounts, m.Users.Assoc.Users)
		}),

		message.AccountingModifyAccounts: naming(d, accounts, func(b *catalog.Catalog, m *message.ModifyAccounts) ([]string, error) {
			return b.ModifyAccounts(&m.Filter.AccountFilter, &m.Record)
		}),
		message.AccountingModifyAssocs: naming(d, assocs, func(b *catalog.Catalog, m *message.ModifyAssociations) ([]string, error) {
			return b.ModifyAssociations(&m.Filter.AssocFilter, &m.Record)
		}),
		message.AccountingModifyQOS: naming(d, qos, func(b *catalog.Catalog, m *message.ModifyQOS) ([]string, error) {
			return b.ModifyQOS(&m.Filter.QOSFilter, &m.Record)
		}),
		message.AccountingModifyUsers: naming(d, users, func(b *catalog.Catalog, m *message.ModifyUsers) ([]string, error) {
			return b.ModifyUsers(&m.Filter.UserFilter, &m.Record)
		}),
		message.AccountingRemoveAccounts: naming(d, accounts, func(b *catalog.Catalog, m *message.GetAccounts) ([]string, error) {
			if reflect.DeepEqual(m.AccountFilter, model.AccountFilter{Flags: m.Flags}) {
				return nil, unselective()
			}
			return b.RemoveAccounts(&m.AccountFilter)
		}),
		message.AccountingRemoveAssocs: naming(d, assocs, func(b *catalog.Catalog, m *message.GetAssociations) ([]string, error) {
			if reflect.DeepEqual(m.AssocFilter, model.AssocFilter{Flags: m.Flags}) {
				return nil, unselective()
			}
			return b.RemoveAssociations(&m.AssocFilter)
		}),
		message.AccountingRemoveClusters: naming(d, clusters, func(b *catalog.Catalog, m *message.GetClusters) ([]string, error) {
			if len(m.ClusterFilter.Names) == 0 {
				return nil, unselective()
			}
			return b.RemoveClusters(&m.ClusterFilter), nil
		}),
		message.AccountingRemoveQOS: naming(d, qos, func(b *catalog.Catalog, m *message.GetQOS) ([]string, error) {
			if len(m.IDs)+len(m.Names)+len(m.Descriptions) == 0 {
				return nil, unselective()
			}
			return b.RemoveQOS(&m.QOSFilter)
		}),
		message.AccountingRemoveUsers: naming(d, users, func(b *catalog.Catalog, m *message.GetUsers) ([]string, error) {
			if len(m.Assoc.Users)+len(m.DefaultAccounts) == 0 {
				return nil, unselective()
			}
			return b.RemoveUsers(&m.UserFilter)
		}),
		message.AccountingRemoveCoords: naming(d, accounts, func(b *catalog.Catalog, m *message.Coordinators) ([]string, error) {
			if len(m.Accounts)+len(m.Users.Assoc.Users) == 0 {
				return nil, unselective()
			}
			return b.RemoveCoordinators(m.Accounts, m.Users.Assoc.Users), nil
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
	what  string
	level uint16
}

// allow returns an error if the client's level is too low for the change. All
// users may choose their own default account.
func (d *Daemon) allow(r *server.Request, needs rule, body message.Body) error {
	level := d.level(r)
	switch m := body.(type) {
	case *message.ModifyUsers:
		own := model.BlankUser()
		own.DefaultAccount = m.Record.DefaultAccount
		if self := d.name(r); level < needs.level && self != "" && reflect.DeepEqual(m.Record, own) &&
			reflect.DeepEqual(m.Filter.Assoc.Users, []string{self}) {
			return nil
		}
		needs = needs.grants(m.Record.AdminLevel)
	case *message.AddUsersTo:
		needs = needs.grants(m.User.AdminLevel)
	case *message.Users:
		for i := range m.Records.List {
			needs = needs.grants(m.Records.List[i].AdminLevel)
		}
	}
	if level < needs.level {
		return denied(needs.what)
	}
	return nil
}

// grants returns the rule for a change that also gives a user this level.
func (needs rule) grants(level uint16) rule {
	if level >= catalog.Operator {
		return rule{"the level of users", catalog.Administrator}
	}
	return needs
}

// change calls do to make a change in the client's transaction, if the client
// may make it.
func (d *Daemon) change(ctx context.Context, r *server.Request, needs rule, body message.Body, do func(*catalog.Catalog) error) error {
	if err := r.Decode(body); err != nil {
		return err
	}
	if err := d.allow(r, needs, body); err != nil {
		return err
	}
	e, err := d.take(ctx, r.Session)
	if err != nil {
		return err
	}
	d.editing.mu.Lock()
	has := e.catalog
	d.editing.mu.Unlock()
	if has == nil {
		has = d.store.Catalog() // the transaction was rolled back meanwhile: use returns the error
	}
	next := has.Clone()
	if err := do(next); err != nil {
		return err
	}
	if err := next.Check(); err != nil {
		return err
	}
	d.editing.mu.Lock()
	defer d.editing.mu.Unlock()
	if err := d.editing.use(e); err != nil {
		return err
	}
	e.catalog = next
	return nil
}

// adding returns the handler of a request that adds a list of records.
func adding[T any](d *Daemon, needs rule, body func() listing[T], add func(*catalog.Catalog, []T) error) server.Handler {
	return func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
		m := body()
		if err := d.change(ctx, r, needs, m, func(b *catalog.Catalog) error { return add(b, m.List().Records.List) }); err != nil {
			return 0, nil, err
		}
		return done(r)
	}
}

// addingTo returns the handler of a request whose answer is a text that lists
// the added records.
func addingTo[M any, B interface {
	*M
	message.Body
}](d *Daemon, needs rule, add func(*catalog.Catalog, B) (string, error)) server.Handler {
	return func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
		m, added := B(new(M)), ""
		err := d.change(ctx, r, needs, m, func(b *catalog.Catalog) (err error) {
			added, err = add(b, m)
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

// naming returns the handler of a request whose answer lists the names of the
// records that were changed, or of the records that prevent the change.
func naming[M any, B interface {
	*M
	message.Body
}](d *Daemon, needs rule, do func(*catalog.Catalog, B) ([]string, error)) server.Handler {
	return func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
		m := B(new(M))
		var names []string
		err := d.change(ctx, r, needs, m, func(b *catalog.Catalog) (err error) {
			names, err = do(b, m)
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
