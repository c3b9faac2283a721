package handlers

import (
	"cmp"
	"slices"

	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// Names of accounts, users, QOS, clusters and workload keys differ in more than
// case (model.SameName). slurmdbd finds a record in any spelling, but stores
// other records that refer to it, such as associations and coordinators, in the
// spelling of the request. It then loses the connection between them in the
// places where it compares exactly, for example in a user's list of
// associations. So a change is sent in the spelling of the existing records.

// storedName returns the name of the record that a filter for this name selects,
// as it is stored, or "" if there is none. If the daemon selects several, it
// prefers the one in the same spelling.
func storedName[T any](e interface{ List(model.Listing) error }, filter model.Filter[T], nameOf func(*T) string, name string) (string, error) {
	stored := ""
	err := e.List(model.List(filter, func(record *T) error {
		if found := nameOf(record); stored == "" || found == name {
			stored = found
		}
		return nil
	}))
	return stored, err
}

// storedNames returns a list of names, each as it is stored, and in the spelling
// of the request if there is no such record. It omits names that are in the list
// twice. The function filter returns the filter for names.
func storedNames[T any](e interface{ List(model.Listing) error }, filter func([]string) model.Filter[T], nameOf func(*T) string, names []string) ([]string, error) {
	if len(names) == 0 {
		return names, nil
	}
	var existing []string
	err := e.List(model.List(filter(names), func(record *T) error {
		if name := nameOf(record); !slices.Contains(existing, name) {
			existing = append(existing, name)
		}
		return nil
	}))
	if err != nil {
		return nil, err
	}
	isOther := func(stored string) bool { return !model.HasName(names, stored) }
	var list []string
	for _, name := range names {
		if i := model.IndexName(existing, name); i >= 0 {
			name = existing[i]
		} else if slices.ContainsFunc(existing, isOther) { // the database ignores more than case
			stored, err := storedName(e, filter([]string{name}), nameOf, name)
			if err != nil {
				return nil, err
			}
			name = cmp.Or(stored, name)
		}
		if !model.HasName(list, name) {
			list = append(list, name)
		}
	}
	return list, nil
}

// onlyExisting returns a stored name, or an error with Slurm's number if it is "".
func onlyExisting(stored string, err error, number int, kind, name, source string) (string, error) {
	if err == nil && stored == "" {
		err = errs.New(errs.NotFound, "there is no %s %q", kind, schema.Shorten(name)).WithSource(source).WithNumber(number)
	}
	return stored, err
}

// existingAccount returns the name of an existing account, as it is stored.
func existingAccount(e model.Editor, name, source string) (string, error) {
	stored, err := storedName[model.Account](e, accountsNamed(name), accountName, name)
	return onlyExisting(stored, err, slurmerror.InvalidAccount, "account", name, source)
}

// existingUser returns the name of an existing user, as it is stored.
func existingUser(e model.Editor, name, source string) (string, error) {
	stored, err := storedName[model.User](e, usersNamed(name), userName, name)
	return onlyExisting(stored, err, slurmerror.UnknownUser, "user", name, source)
}

// existingCluster returns the name of an existing cluster, as it is stored. When
// slurmdbd lists clusters, it ignores case. When it lists or changes the records
// of a cluster, it does not, so it would find nothing and report success.
//
// It makes one request for each cluster. Another client can remove the cluster
// while the transaction has records in it, but further requests would not show
// this: what a transaction reads is as it was at its first request. So
// clustersRemain asks in another session at the end.
func existingCluster(tx *transaction, name, source string) (string, error) {
	if tx.isPlanned(name) {
		return name, nil
	}
	return tx.remember("existing cluster/"+name, name, func() (string, error) {
		stored, err := storedName[model.Cluster](tx, clustersNamed(name), clusterRecordName, name)
		if stored != "" {
			tx.clusters = append(tx.clusters, stored)
		}
		return onlyExisting(stored, err, slurmerror.InvalidCluster, "cluster", name, source)
	})
}

// clustersRemain returns model.ErrRestart if another client has removed a cluster
// in which the transaction has made records. slurmdbd would keep the records.
func (tx *transaction) clustersRemain() error {
	for _, name := range tx.clusters {
		stored, err := storedName[model.Cluster](lister(tx.others), clustersNamed(name), clusterRecordName, name)
		if err == nil && stored == "" {
			err = model.ErrRestart
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func clusterRecordName(l *model.Cluster) string { return l.Name }

func clustersNamed(names ...string) model.ClusterFilter { return model.ClusterFilter{Names: names} }

// storedCluster returns the name of a cluster as it is stored, or name if there
// is no such cluster. Records of the gateway's own cluster are the usual case, for
// which it makes no request.
func (tx *transaction) storedCluster(name string) (string, error) {
	if name == "" || name == tx.h.Cluster || tx.isPlanned(name) {
		return name, nil
	}
	return tx.remember("cluster/"+name, name, func() (string, error) {
		return storedName[model.Cluster](tx, clustersNamed(name), clusterRecordName, name)
	})
}

// storedWCKey returns the name of a workload key as it is stored for any user,
// or name if there is none. Coordinators may give workload keys to new users, but
// not list them. The transaction does not list them itself, because slurmdbd
// rolls it back after a refusal.
func (tx *transaction) storedWCKey(name string) (string, error) {
	return tx.remember("wckey/"+model.NameKey(name), name, func() (string, error) {
		stored, err := storedName[model.WCKey](lister(tx.others), model.WCKeyFilter{Names: []string{name}}, func(k *model.WCKey) string { return k.Name }, name)
		if errs.KindOf(err) == errs.Denied {
			err = nil
		}
		return stored, err
	})
}

// remember returns the result of find, or name if it is "". It calls find once
// for each key: a load has many records of one cluster or with one workload key.
func (tx *transaction) remember(key, name string, find func() (string, error)) (string, error) {
	if stored, ok := tx.names[key]; ok {
		return stored, nil
	}
	stored, err := find()
	if err != nil {
		return name, err
	}
	if stored == "" {
		stored = name
	}
	if tx.names == nil {
		tx.names = map[string]string{}
	}
	tx.names[key] = stored
	return stored, nil
}

// spellClusters returns the names of clusters in a filter as they are stored. A
// name that is not the gateway's own cluster costs a request.
func (h *handler) spellClusters(c *rest.Call, names []string) ([]string, error) {
	if !slices.ContainsFunc(names, func(name string) bool { return name != h.Cluster }) {
		return names, nil
	}
	list := lister(func(l model.Listing) error { return h.Accounting.List(c.Context(), c.Credential(), l) })
	return storedNames(list, func(names []string) model.Filter[model.Cluster] { return clustersNamed(names...) }, clusterRecordName, names)
}
