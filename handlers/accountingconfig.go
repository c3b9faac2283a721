package handlers

import (
	"fmt"
	"net/http"
	"slices"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

func (h *handler) getConfig(c *rest.Call, _ *api.NoParams) error {
	r, err := h.records(c)
	if err != nil {
		return err
	}
	body := api.ConfigAnswer{
		Clusters: rows(recordsOf[model.Cluster](h, c, model.ClusterFilter{WithDeleted: true, WithUsage: true}),
			func(l *model.Cluster) api.ClusterRow { return api.ClusterRow{Cluster: l, Records: r} }),
		TRES: recordsOf[model.TRES](h, c, model.TRESFilter{WithDeleted: true}),
		Accounts: recordsOf[model.Account](h, c, model.AccountFilter{
			Flags: model.AccountWithDeleted | model.AccountWithAssocs | model.AccountWithCoordinators}),
		Users: recordsOf[model.User](h, c, model.UserFilter{
			WithDeleted: true, WithAssocs: true, WithCoordinates: true, WithWCKeys: true}),
		QOS: rows(recordsOf[model.QOS](h, c, model.QOSFilter{Flags: model.QOSWithDeleted}),
			func(q *model.QOS) api.QOSRow { return api.QOSRow{QOS: q, Records: r} }),
		WCKeys: recordsOf[model.WCKey](h, c, model.WCKeyFilter{WithDeleted: true, WithUsage: true}),
		Associations: rows(recordsOf[model.Association](h, c, model.AssocFilter{Flags: model.AssocWithDeleted | model.AssocWithUsage}),
			func(a *model.Association) api.AssociationRow { return api.AssociationRow{Association: a, Records: r} }),
		Envelope: c.Envelope(),
	}
	return rest.Send(c, http.StatusOK, api.Config, &body)
}

// rows converts a stream of records to a stream of rows.
func rows[T, R any](list schema.Stream[T], row func(*T) R) schema.Stream[R] {
	return func(each func(*R) error) error {
		return list(func(record *T) error {
			converted := row(record)
			return each(&converted)
		})
	}
}

// postConfig loads records of all kinds. If a record refers to other records,
// it is loaded after them.
func (h *handler) postConfig(c *rest.Call, _ *api.NoParams) error {
	body, err := rest.ReadBody(c, api.ConfigRequest)
	if err != nil {
		return err
	}
	n := len(body.Clusters) + len(body.Accounts) + len(body.Users) + len(body.QOS) + len(body.WCKeys) + len(body.Associations)
	if n == 0 {
		return errs.New(errs.Invalid, "the body has no record: nothing was changed").WithSource("#")
	}
	_, err = h.makeEdit(c, fmt.Sprintf("%d records", n), func() ([]string, error) {
		created, err := h.addNewClusters(c, body)
		if err != nil {
			return created, err
		}
		changed, err := h.transact(c, func(tx *transaction) (changed []string, err error) {
			if len(body.TRES) > 0 {
				c.Warn("#/tres", "has no effect: trackable resources are added by AccountingStorageTRES in slurm.conf")
			}
			for i, row := range body.Clusters {
				if !model.HasName(created, row.Name) { // it exists already
					k := clusterKind
					k.first = i
					if _, err := changeRecords(tx, k, body.Clusters[i:i+1]); err != nil {
						return nil, err
					}
				}
			}
			return loadConfig(tx, body)
		})
		return slices.Concat(created, changed), withClusters(err, created)
	})
	return h.answerEdit(c, err)
}

// loadConfig makes all changes of a configuration but those of clusters.
func loadConfig(tx *transaction, body *api.ConfigBody) (changed []string, err error) {
	tx.copies = true
	step := func(done []string, err error) error {
		changed = append(changed, done...)
		return err
	}
	if err := step(changeRecords(tx, qosKind, withoutNumbers(body.QOS))); err != nil {
		return nil, err
	}
	if err := step(changeRecords(tx, accountKind, withoutCoordinators(body.Accounts))); err != nil {
		return nil, err
	}
	if err := step(changeRecords(tx, userKind, withoutDefaults(body.Users))); err != nil {
		return nil, err
	}
	if err := step(changeRecords(tx, wckeyKind, body.WCKeys)); err != nil {
		return nil, err
	}
	if err := step(changeRecords(tx, associationKind, body.Associations)); err != nil {
		return nil, err
	}
	if err := changeAgain(tx, accountKind, onlyCoordinators(body.Accounts)); err != nil {
		return nil, err
	}
	if tx.planned != nil { // their associations and workload keys may be in the new clusters
		return changed, nil
	}
	return changed, changeAgain(tx, userKind, body.Users)
}

// changeAgain changes records a second time, after the records that they refer
// to were created. It discards the warnings, which the first change has already
// added.
func changeAgain[T any](tx *transaction, k kind[T], records []T) error {
	numWarnings := tx.call.NumWarnings()
	_, err := changeRecords(tx, k, records)
	tx.call.KeepWarnings(numWarnings)
	return err
}

// withoutCoordinators returns a copy of the accounts without their
// coordinators. The users who are to be coordinators may not exist yet.
func withoutCoordinators(accounts []model.Account) []model.Account {
	accounts = slices.Clone(accounts)
	for i := range accounts {
		accounts[i].Coordinators = nil
	}
	return accounts
}

// onlyCoordinators returns a copy of the accounts in which only the coordinators
// are set, for a change of accounts that have all other values already.
func onlyCoordinators(accounts []model.Account) []model.Account {
	accounts = slices.Clone(accounts)
	for i, a := range accounts {
		accounts[i] = model.Account{Name: a.Name, Coordinators: a.Coordinators, Flags: a.Flags & recordDeleted}
	}
	return accounts
}

// withoutNumbers returns a copy of the QOS without the numbers of those that
// have a name. Another database may give a QOS another number.
func withoutNumbers(rows []api.QOSRow) []api.QOSRow {
	rows = slices.Clone(rows)
	for i, q := range rows {
		if q.Name != "" {
			record := *q.QOS
			record.ID = 0
			rows[i].QOS = &record
		}
	}
	return rows
}

// withoutDefaults returns a copy of the users without their defaults. The
// associations and workload keys for the defaults may not exist yet.
func withoutDefaults(users []model.User) []model.User {
	users = slices.Clone(users)
	for i := range users {
		users[i].DefaultAccount, users[i].DefaultWCKey = "", ""
	}
	return users
}
