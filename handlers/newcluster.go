package handlers

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// slurmdbd can't roll back a new cluster. Its tables, and its name in slurmdbd's
// memory, stay. If its record is not committed, slurmdbd refuses changes of
// accounts and associations of all clients ("Cluster … has not been added yet"),
// until the cluster is created or slurmdbd is started again. So each cluster is
// created in a transaction of its own, after everything else was checked.

// maxClusterName is the maximum length of a cluster's name. It is part of the
// names of tables, which MariaDB limits to 64 characters.
const maxClusterName = 40

// clusterError is the error of a cluster that may be half created.
type clusterError struct{ error }

func (e clusterError) Unwrap() error { return e.error }

// addClusters creates clusters, one after another.
func (h *handler) addClusters(c *rest.Call, rows []api.ClusterRow) (done []string, err error) {
	if err := checkClusters(rows); err != nil {
		return nil, err
	}
	for i := range rows {
		k := clusterKind
		k.first = i
		created, err := h.transact(c, func(tx *transaction) ([]string, error) {
			created, err := changeRecords(tx, k, rows[i:i+1])
			if err != nil && tx.sent > 0 {
				err = clusterError{err}
			}
			return created, err
		})
		if err != nil {
			return done, explainCluster(err, rows[i].Name, done)
		}
		done = append(done, created...)
	}
	return done, nil
}

// checkClusters returns an error if one of the clusters can't be created.
func checkClusters(rows []api.ClusterRow) error {
	seen := map[string]bool{}
	for i := range rows {
		at := fmt.Sprintf("#/%s/%d", clusterKind.list, i)
		err := checkClusterName(rows[i].Name, at)
		if err == nil && seen[model.NameKey(rows[i].Name)] {
			err = errs.New(errs.Invalid, "the name is in the request twice").WithSource(at).WithNumber(slurmerror.AmbiguousModify)
		}
		if err != nil {
			return annotateUnchanged(annotateNamed(err, clusterKind.noun, rows[i].Name, at))
		}
		seen[model.NameKey(rows[i].Name)] = true
	}
	return nil
}

func checkClusterName(name, at string) error {
	switch {
	case !api.IsClusterName(name):
		return errs.New(errs.Invalid, "a name of a cluster may contain only letters, digits, '_', '-' and '.'").WithSource(at + "/name").WithNumber(slurmerror.BadName)
	case len(name) > maxClusterName:
		return errs.New(errs.Invalid, "a name of a cluster may have at most %d characters", maxClusterName).WithSource(at + "/name").WithNumber(slurmerror.BadName)
	}
	return checkName(name, at)
}

// explainCluster returns the error for a cluster that was not created, after
// those in done were. Its hint is for an administrator.
func explainCluster(err error, name string, done []string) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok {
		return err
	}
	explained := *e
	var hints []string
	if e.Hint != "" {
		hints = append(hints, e.Hint)
	}
	_, sent := errors.AsType[clusterError](err)
	if sent && e.Kind != errs.Denied || e.Kind == errs.Unavailable || e.Kind == errs.Timeout || e.Kind == errs.BadAnswer {
		explained.Message = strings.Replace(e.Message, "nothing was changed", "the cluster was not created", 1)
		hints = append(hints, fmt.Sprintf("slurmdbd may now refuse other changes, because cluster %q has not been added yet: create it, with this request or with sacctmgr, or start slurmdbd again", name))
	}
	explained.Hint = strings.Join(hints, "; ")
	return withClusters(&explained, done)
}

// withClusters adds to an error that new clusters remain.
func withClusters(err error, done []string) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || len(done) == 0 {
		return err
	}
	explained := *e
	explained.Message = strings.Replace(e.Message, "nothing was changed", "nothing else was changed", 1)
	explained.Message += fmt.Sprintf("; new clusters that remain: %s", truncateList(strings.Join(done, ", ")))
	if e.Hint != "" {
		explained.Hint += "; "
	}
	explained.Hint += "DELETE cluster/NAME removes a cluster"
	return &rest.PartialError{Err: &explained, Objects: truncateList(strings.Join(done, "; "))}
}

// errPlanned ends a transaction that only checks what others would do.
var errPlanned = errors.New("the records were only checked")

// addNewClusters creates those clusters of a configuration that do not exist,
// and returns their names. Before, it makes all other changes of the
// configuration in a transaction that is rolled back.
func (h *handler) addNewClusters(c *rest.Call, body *api.ConfigBody) (created []string, err error) {
	var rows []api.ClusterRow
	for i, row := range body.Clusters {
		if row.Flags != model.NoVal32 && row.Flags&model.ClusterDeleted != 0 {
			continue
		}
		at := fmt.Sprintf("#/%s/%d", clusterKind.list, i)
		if err := checkClusterName(row.Name, at); err != nil { // before the daemon receives it
			return nil, annotateUnchanged(annotateNamed(err, clusterKind.noun, row.Name, at))
		}
		exists := false
		err := h.Accounting.List(c.Context(), c.Credential(), model.List(clustersNamed(row.Name), func(*model.Cluster) error { exists = true; return nil }))
		if err != nil {
			return nil, err
		}
		if !exists {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	if err := checkClusters(rows); err != nil {
		return nil, err
	}
	numWarnings := c.NumWarnings()
	_, err = h.transact(c, func(tx *transaction) ([]string, error) {
		tx.planned = map[string]bool{}
		for _, row := range rows {
			tx.planned[plannedKey(row.Name, rootAccount)] = true
		}
		if _, err := loadConfig(tx, body); err != nil {
			return nil, err
		}
		return nil, errors.Join(errPlanned, tx.sendCoordinators())
	})
	c.KeepWarnings(numWarnings)
	if !errors.Is(err, errPlanned) || errs.KindOf(err) != errs.Internal {
		return nil, err
	}
	return h.addClusters(c, rows)
}

// plannedKey returns the key of an account in a cluster in transaction.planned.
func plannedKey(cluster, account string) string {
	return model.NameKey(cluster) + "/" + model.NameKey(account)
}

// isPlanned reports whether the request will create the cluster later.
func (tx *transaction) isPlanned(cluster string) bool {
	return tx.planned[plannedKey(cluster, rootAccount)]
}

// isPlannedAccount reports whether the request will create the account's own
// association in the cluster later.
func (tx *transaction) isPlannedAccount(account, cluster string) bool {
	return tx.planned[plannedKey(cluster, account)]
}

// checkPlanned checks an association in a cluster that the request will create
// later, without a request that names this cluster.
func checkPlanned(tx *transaction, row *api.AssociationRow, at string) error {
	if _, err := existingAccount(tx, row.Account, at+"/account"); err != nil {
		return err
	}
	switch {
	case row.User == "" && row.ParentAccount != "" && !tx.isPlannedAccount(row.ParentAccount, row.Cluster):
		return notInCluster(row.ParentAccount, row.Cluster, slurmerror.InvalidParent, at+"/parent_account")
	case row.User != "" && !tx.isPlannedAccount(row.Account, row.Cluster):
		return notInCluster(row.Account, row.Cluster, slurmerror.InvalidAccount, at+"/account")
	case row.User != "":
		if _, err := userOfNew(tx, row.User, at+"/user"); err != nil {
			return err
		}
	default:
		tx.planned[plannedKey(row.Cluster, row.Account)] = true
	}
	record := *row.Association
	return fillAssociation(tx, row, &record, nil, at)
}

// withoutPlanned returns the workload keys that are not in clusters that the
// request will create later.
func (tx *transaction) withoutPlanned(keys []model.WCKey) []model.WCKey {
	return slices.DeleteFunc(keys, func(k model.WCKey) bool { return tx.isPlanned(k.Cluster) })
}
