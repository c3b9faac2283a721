package handlers

import (
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// checkName returns an error if a record has no name, or one with a comma. A
// daemon may apply a change with an empty name to all records, and no command
// of Slurm can name a record with a comma.
func checkName(name, at string) error {
	if strings.Contains(name, ",") {
		return errs.New(errs.Invalid, "a name must not contain a comma").WithSource(at + "/name").WithNumber(slurmerror.BadName)
	}
	if name == "" {
		return errs.New(errs.Invalid, "the name is empty").WithSource(at + "/name").WithNumber(slurmerror.MissingField)
	}
	return nil
}

// checkNew returns an error if no new record may have one of these names. Each name
// follows its field.
func checkNew(at string, fields ...string) error {
	for i := 0; i < len(fields); i += 2 {
		if fault := api.NameFault(fields[i+1]); fault != "" {
			return errs.New(errs.Invalid, "%s", fault).WithSource(at + "/" + fields[i]).WithNumber(slurmerror.BadName)
		}
	}
	return nil
}

func accountsNamed(name string) model.AccountFilter {
	return model.AccountFilter{Assoc: model.AssocFilter{Accounts: []string{name}}}
}

func usersNamed(name string) model.UserFilter {
	return model.UserFilter{Assoc: model.AssocFilter{Users: []string{name}}}
}

// checkInClusters returns an error with Slurm's number unless each account has an association of
// its own in each of the clusters. If clusters is empty, any cluster is
// sufficient.
func checkInClusters(e model.Editor, accounts, clusters []string, number int, source string) error {
	if len(clusters) == 0 {
		clusters = []string{""}
	}
	for _, account := range accounts {
		for _, cluster := range clusters {
			if err := checkInCluster(e, account, cluster, number, source); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkInCluster returns an error with Slurm's number unless the account has an association of its
// own in the cluster. Associations of its users don't count. If cluster is "",
// any cluster is sufficient.
func checkInCluster(e model.Editor, account, cluster string, number int, source string) error {
	filter := model.AssocFilter{Accounts: []string{account}, Users: []string{""}}
	if cluster != "" {
		filter.Clusters = []string{cluster}
	}
	found, err := hasRecord[model.Association](e, filter)
	if err == nil && !found {
		err = notInCluster(account, cluster, number, source)
	}
	return err
}

// notInCluster returns the error for an account without an association of its
// own in the cluster, or in any cluster if cluster is "".
func notInCluster(account, cluster string, number int, source string) error {
	scope := "any cluster"
	if cluster != "" {
		scope = "cluster " + schema.Shorten(cluster)
	}
	return errs.New(errs.NotFound, "there is no account %q in %s", schema.Shorten(account), scope).WithSource(source).WithNumber(number)
}

// userOfNew returns the name of the user of a new record, as it is stored, and
// an error if there is no such user. In Slurm's spelling, it only adds a warning.
// The user then has at most associations, in one spelling.
func userOfNew(tx *transaction, name, source string) (string, error) {
	stored, err := existingUser(tx, name, source)
	if errs.KindOf(err) == errs.NotFound && tx.call.Lenient(api.UserWithoutRecord) {
		tx.call.Warn(source, "there is no user %q: POST users/ creates the record of the user", schema.Shorten(name))
		stored, err = storedName[model.Association](tx, model.AssocFilter{Users: []string{name}}, func(a *model.Association) string { return a.User }, name)
		if stored == "" {
			stored = name
		}
	}
	return stored, err
}
