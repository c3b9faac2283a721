package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// AddAccountsTo adds accounts and associates them with clusters. It skips
// accounts and associations that already exist. It returns a string that lists
// what it has added, or "" if it has added nothing.
func (b *Catalog) AddAccountsTo(set *model.AddAccountsWithAssocs) (string, error) {
	clusters, err := b.clustersOf(&set.AssocSet)
	if err != nil {
		return "", err
	}
	var accounts, assocs []string
	for _, name := range set.Accounts {
		name = b.account(name)
		if b.Accounts[name] == nil {
			a := set.Account
			a.Name, a.Description = name, cmp.Or(stored(a.Description), model.Text(name))
			a.Organization = cmp.Or(stored(a.Organization), model.Text(set.Assoc.ParentAccount), model.Text(name))
			if err := b.addAccount(&a); err != nil {
				return "", err
			}
			accounts = append(accounts, name)
		}
		for _, cluster := range clusters {
			if b.findAssociation(cluster, name, "", "") != nil {
				continue
			}
			a := set.Assoc
			a.Account, a.Cluster, a.User, a.Partition = name, cluster, "", ""
			rec, err := b.addAssociation(&a)
			if err != nil {
				return "", err
			}
			assocs = append(assocs, text(rec))
		}
	}
	return additions("Account", accounts, assocs), nil
}

// AddUsersTo adds users and associates them with accounts. It skips users and
// associations that already exist. It returns a string that lists what it has
// added, or "" if it has added nothing.
func (b *Catalog) AddUsersTo(set *model.AddUsersWithAssocs) (string, error) {
	if len(set.WCKeys) > 0 || set.User.DefaultWCKey != "" {
		return "", unsupported("workload keys")
	}
	clusters, err := b.clustersOf(&set.AssocSet)
	if err != nil {
		return "", err
	}
	partitions := set.Partitions
	if len(partitions) == 0 {
		partitions = []string{""}
	}
	var users, assocs []string
	for _, name := range set.Users {
		name = b.user(name)
		if b.Users[name] == nil {
			u := set.User
			u.Name = name
			if err := b.addUser(&u); err != nil {
				return "", err
			}
			users = append(users, name)
		}
		for _, account := range set.Accounts {
			account = b.account(account)
			for _, cluster := range clusters {
				for _, partition := range partitions {
					if b.findAssociation(cluster, account, name, partition) != nil {
						continue
					}
					a := set.Assoc
					a.Account, a.Cluster, a.User, a.Partition = account, cluster, name, partition
					if b.account(set.User.DefaultAccount) == account {
						a.IsDefault = model.Some[uint16](1)
					}
					rec, err := b.addAssociation(&a)
					if err != nil {
						return "", err
					}
					assocs = append(assocs, text(rec))
				}
			}
		}
	}
	return additions("User", users, assocs), nil
}

// clustersOf returns the clusters that s names, or all clusters if s names
// none.
func (b *Catalog) clustersOf(s *model.AssocSet) ([]string, error) {
	var names []string
	for _, name := range s.Clusters {
		stored := b.cluster(name)
		if b.Clusters[stored] == nil {
			return nil, invalid("there is no cluster %.60q", name)
		}
		names = append(names, stored)
	}
	if len(names) > 0 {
		return names, nil
	}
	if len(b.Clusters) == 0 {
		return nil, refuse(errs.Conflict, fault.EmptyList, "there is no cluster yet: add one, or run a job")
	}
	return slices.Sorted(maps.Keys(b.Clusters)), nil
}

// additions returns the text that lists additions.
func additions(kind string, names, assocs []string) string {
	var text strings.Builder
	list := func(title string, lines []string) {
		if len(lines) > 0 {
			text.WriteString(" " + title + "\n  " + strings.Join(lines, "\n  ") + "\n")
		}
	}
	list("Adding "+kind+"(s)", names)
	list("Associations", assocs)
	return text.String()
}
