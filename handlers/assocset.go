package handlers

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// postAccountsAssociation creates accounts with associations.
func (h *handler) postAccountsAssociation(c *rest.Call, _ *api.NoParams) error {
	body, err := rest.ReadBody(c, api.AccountsWithAssocsBody)
	if err != nil {
		return err
	}
	if err := checkSet(&body.Set, "accounts", body.Set.Accounts); err != nil {
		return err
	}
	return h.addRecords(c, api.AccountsAdded, body.Set.Accounts, func(tx *transaction) (any, error) {
		set, err := assocSet(tx, &body.Set)
		return model.AddAccountsWithAssocs{AssocSet: set, Account: body.Account}, err
	})
}

// postUsersAssociation creates users with associations.
func (h *handler) postUsersAssociation(c *rest.Call, _ *api.UsersWithAssocsParams) error {
	body, err := rest.ReadBody(c, api.UsersWithAssocsBody)
	if err != nil {
		return err
	}
	if len(body.Set.Accounts)+len(body.Set.WCKeys) == 0 && body.User.DefaultAccount == "" && body.User.DefaultWCKey == "" {
		return errs.New(errs.Invalid, "expected accounts or wckeys, or a default account or wckey").
			WithSource(atSet + "/accounts").WithNumber(slurmerror.AmbiguousQuery)
	}
	if len(body.Set.Accounts) == 0 && body.User.DefaultAccount != "" {
		body.Set.Accounts = []string{body.User.DefaultAccount}
	}
	if len(body.Set.WCKeys) == 0 && body.User.DefaultWCKey != "" {
		body.Set.WCKeys = []string{body.User.DefaultWCKey}
	}
	if err := checkSet(&body.Set, "users", body.Set.Users); err != nil {
		return err
	}
	if name := body.User.DefaultAccount; name != "" && !model.HasName(body.Set.Accounts, name) {
		return errs.New(errs.Invalid, "expected one of the accounts: nothing was changed").WithSource("#/user/defaultaccount").WithNumber(slurmerror.InvalidAccount)
	}
	if name := body.User.DefaultWCKey; name != "" && !model.HasName(body.Set.WCKeys, name) {
		return errs.New(errs.Invalid, "expected one of the wckeys: nothing was changed").WithSource("#/user/defaultwckey").WithNumber(slurmerror.InvalidWCKey)
	}
	return h.addRecords(c, api.UsersAdded, body.Set.Users, func(tx *transaction) (any, error) {
		// The daemon leaves existing users as they are.
		if err := checkAdministrators(tx, nil, body.User.AdminLevel, "#/user/adminlevel"); err != nil {
			return nil, err
		}
		for _, name := range body.Set.Accounts {
			if _, err := existingAccount(tx, name, atSet+"/accounts"); err != nil {
				return nil, err
			}
		}
		set, err := assocSet(tx, &body.Set)
		if err == nil {
			err = checkInClusters(tx, set.Accounts, set.Clusters, slurmerror.InvalidAccount, atSet+"/accounts")
		}
		user := body.User
		if i := model.IndexName(set.Accounts, user.DefaultAccount); i >= 0 {
			user.DefaultAccount = set.Accounts[i]
		}
		if i := model.IndexName(set.WCKeys, user.DefaultWCKey); i >= 0 {
			user.DefaultWCKey = set.WCKeys[i]
		}
		return model.AddUsersWithAssocs{AssocSet: set, User: user}, err
	})
}

// atSet is the place of an api.AssocSet in a body.
const atSet = "#/association_condition"

// checkSet returns an error if a list in s contains an empty name. The argument
// required is one of these lists, and must not be empty. The name argument is
// the name of that list in the body.
func checkSet(s *api.AssocSet, name string, required []string) error {
	if len(required) == 0 {
		return errs.New(errs.Invalid, "expected at least one of %s: nothing was changed", name).
			WithSource(atSet + "/" + name).WithNumber(slurmerror.EmptyList)
	}
	for _, list := range []struct {
		name   string
		values []string
	}{
		{"accounts", s.Accounts}, {"clusters", s.Clusters}, {"partitions", s.Partitions}, {"users", s.Users}, {"wckeys", s.WCKeys},
	} {
		if slices.Contains(list.values, "") {
			return errs.New(errs.Invalid, "a name is empty: nothing was changed").WithSource(atSet + "/" + list.name).WithNumber(slurmerror.MissingField)
		}
	}
	return nil
}

// assocSet returns the associations that a body describes, with all names as
// they are stored.
func assocSet(tx *transaction, s *api.AssocSet) (model.AssocSet, error) {
	set := model.AssocSet{Accounts: s.Accounts, Assoc: model.BlankAssociation(), Clusters: s.Clusters,
		Partitions: s.Partitions, Users: s.Users, WCKeys: s.WCKeys}
	for _, name := range s.Clusters {
		if _, err := existingCluster(tx, name, atSet+"/clusters"); err != nil {
			return set, err
		}
	}
	if err := spellNames(tx, &set); err != nil {
		return set, err
	}
	if s.Common == nil {
		return set, nil
	}
	set.Assoc = *s.Common.Association
	if name := set.Assoc.ParentAccount; name != "" {
		if err := checkInClusters(tx, []string{name}, set.Clusters, slurmerror.InvalidParent, atSet+"/association/parent"); err != nil {
			return set, err
		}
		stored, err := storedName[model.Account](tx, accountsNamed(name), accountName, name)
		if err != nil {
			return set, err
		}
		set.Assoc.ParentAccount = cmp.Or(stored, name)
	}
	return set, fillAssociation(tx, s.Common, &set.Assoc, nil, atSet+"/association")
}

// spellNames spells the names in set as they are stored.
func spellNames(tx *transaction, set *model.AssocSet) (err error) {
	accounts := func(names []string) model.Filter[model.Account] {
		return model.AccountFilter{Assoc: model.AssocFilter{Accounts: names}}
	}
	if set.Accounts, err = storedNames(tx, accounts, accountName, set.Accounts); err != nil {
		return err
	}
	users := func(names []string) model.Filter[model.User] {
		return model.UserFilter{Assoc: model.AssocFilter{Users: names}}
	}
	if set.Users, err = storedNames(tx, users, userName, set.Users); err != nil {
		return err
	}
	clusters := func(names []string) model.Filter[model.Cluster] { return clustersNamed(names...) }
	if set.Clusters, err = storedNames(tx, clusters, clusterRecordName, set.Clusters); err != nil {
		return err
	}
	var keys []string
	for _, name := range set.WCKeys {
		if name, err = tx.storedWCKey(name); err != nil {
			return err
		}
		if !model.HasName(keys, name) {
			keys = append(keys, name)
		}
	}
	set.WCKeys = keys
	return nil
}

// addRecords adds records in one transaction. The buildChange function returns
// the change to make. The answer contains the daemon's description of the new
// records.
func (h *handler) addRecords(c *rest.Call, table *api.AnswerType[api.AddedAnswer], names []string,
	buildChange func(*transaction) (any, error)) error {
	descriptions, err := h.edit(c, strings.Join(names, " "), func(tx *transaction) ([]string, error) {
		change, err := buildChange(tx)
		if err != nil {
			return nil, annotateUnchanged(err)
		}
		descriptions, err := tx.Change(change)
		if err != nil {
			return nil, annotateUnchanged(err)
		}
		if len(descriptions) == 0 {
			c.Warn(atSet, "all records exist already: nothing was added")
		}
		return descriptions, nil
	})
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, table, &api.AddedAnswer{Added: strings.Join(descriptions, "\n"), Envelope: c.Envelope()})
}
