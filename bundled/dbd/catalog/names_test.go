package catalog

import (
	"fmt"
	"strings"
	"testing"

	"schedrestd/model"
)

// TestSpellings makes each change with many spellings of a name. A spelling that
// is the same name must have the same effect as the stored one, so that nothing
// stores a second spelling. Any other must change no existing record.
func TestSpellings(t *testing.T) {
	const stored = "Kissä"
	names := func(name string) []string { return []string{name} }
	changes := map[string]func(b *Catalog, name string) error{
		"add an account": func(b *Catalog, name string) error { return b.AddAccounts([]model.Account{{Name: name}}) },
		"change an account": func(b *Catalog, name string) error {
			_, err := b.ModifyAccounts(&model.AccountFilter{Assoc: model.AssocFilter{Accounts: names(name)}}, &model.Account{Description: "changed"})
			return err
		},
		"remove an account": func(b *Catalog, name string) error {
			_, err := b.RemoveAccounts(&model.AccountFilter{Assoc: model.AssocFilter{Accounts: names(name)}})
			return err
		},
		"add a user": func(b *Catalog, name string) error { return b.AddUsers([]model.User{{Name: name}}) },
		"change a user": func(b *Catalog, name string) error {
			_, err := b.ModifyUsers(&model.UserFilter{Assoc: model.AssocFilter{Users: names(name)}}, &model.User{AdminLevel: 2, DefaultQOSID: model.NoVal32})
			return err
		},
		"change the default account": func(b *Catalog, name string) error {
			_, err := b.ModifyUsers(&model.UserFilter{Assoc: model.AssocFilter{Users: names("ann")}}, &model.User{DefaultAccount: name, DefaultQOSID: model.NoVal32})
			return err
		},
		"remove a user": func(b *Catalog, name string) error {
			_, err := b.RemoveUsers(&model.UserFilter{Assoc: model.AssocFilter{Users: names(name)}})
			return err
		},
		"add a QOS": func(b *Catalog, name string) error { return b.AddQOS([]model.QOS{{Name: name}}) },
		"change a QOS": func(b *Catalog, name string) error {
			change := model.BlankQOS()
			change.Description = "changed"
			_, err := b.ModifyQOS(&model.QOSFilter{Names: names(name)}, &change)
			return err
		},
		"remove a QOS": func(b *Catalog, name string) error {
			_, err := b.RemoveQOS(&model.QOSFilter{Names: names(name)})
			return err
		},
		"add a cluster": func(b *Catalog, name string) error { return b.AddClusters([]model.Cluster{{Name: name}}) },
		"remove a cluster": func(b *Catalog, name string) error {
			b.RemoveClusters(&model.ClusterFilter{Names: names(name)})
			return nil
		},
		"add a coordinator":       func(b *Catalog, name string) error { return b.AddCoordinators(names("sub"), names(name)) },
		"add a coordinator of it": func(b *Catalog, name string) error { return b.AddCoordinators(names(name), names("ann")) },
		"remove a coordinator":    func(b *Catalog, name string) error { b.RemoveCoordinators(nil, names(name)); return nil },
		"remove its coordinators": func(b *Catalog, name string) error { b.RemoveCoordinators(names(name), nil); return nil },
		"add an association with it": func(b *Catalog, name string) error {
			return b.AddAssociations([]model.Association{assocIn(stored, name, "new", "")})
		},
		"add an association of it": func(b *Catalog, name string) error {
			return b.AddAssociations([]model.Association{assocIn(stored, "sub", name, "p")})
		},
		"add an association in it": func(b *Catalog, name string) error {
			return b.AddAssociations([]model.Association{assocIn(name, "sub", "new", "")})
		},
		"add the partition": func(b *Catalog, name string) error {
			return b.AddAssociations([]model.Association{assocIn(stored, stored, stored, name)})
		},
		"change the associations with it": func(b *Catalog, name string) error {
			return changeAssociations(b, model.AssocFilter{Accounts: names(name)})
		},
		"change the associations of it": func(b *Catalog, name string) error {
			return changeAssociations(b, model.AssocFilter{Users: names(name)})
		},
		"change the associations in it": func(b *Catalog, name string) error {
			return changeAssociations(b, model.AssocFilter{Clusters: names(name), Users: names("ann")})
		},
		"change the parent": func(b *Catalog, name string) error {
			change := model.BlankAssociation()
			change.ParentAccount = name
			_, err := b.ModifyAssociations(&model.AssocFilter{Accounts: names("other"), Users: names("")}, &change)
			return err
		},
		"remove the associations of it": func(b *Catalog, name string) error {
			_, err := b.RemoveAssociations(&model.AssocFilter{Users: names(name), Partitions: names(stored)})
			return err
		},
		"remove the associations with its partition": func(b *Catalog, name string) error {
			_, err := b.RemoveAssociations(&model.AssocFilter{Users: names(stored), Partitions: names(name)})
			return err
		},
		"add accounts to a cluster": func(b *Catalog, name string) error {
			_, err := b.AddAccountsTo(&model.AddAccountsWithAssocs{AssocSet: model.AssocSet{Accounts: names("new"), Clusters: names(name), Assoc: model.BlankAssociation()}})
			return err
		},
		"add it to a cluster": func(b *Catalog, name string) error {
			_, err := b.AddAccountsTo(&model.AddAccountsWithAssocs{AssocSet: model.AssocSet{Accounts: names(name), Clusters: names(stored), Assoc: model.BlankAssociation()}})
			return err
		},
		"add users to it": func(b *Catalog, name string) error {
			_, err := b.AddUsersTo(&model.AddUsersWithAssocs{AssocSet: model.AssocSet{Accounts: names(name), Users: names("new"), Clusters: names(stored), Assoc: model.BlankAssociation()}, User: model.BlankUser()})
			return err
		},
		"add the user to an account": func(b *Catalog, name string) error {
			_, err := b.AddUsersTo(&model.AddUsersWithAssocs{AssocSet: model.AssocSet{Accounts: names("sub"), Users: names(name), Clusters: names(stored), Assoc: model.BlankAssociation()}, User: model.BlankUser()})
			return err
		},
	}
	spellings := []string{strings.ToLower(stored), strings.ToUpper(stored), "kISSÄ", "KisSä", "\u212aissä", "Ki\u017fsä", "Kıssä", "Kİssä", "Kissa", "Kissa\u0308", "Kißä",
		" Kissä", "Kissä ", "Kissä\t", `"Kissä"`, "'Kissä'", "Kissä'", "Kissä,sub", "Kiss%", "Kiss_", "*", "+Kissä", "-Kissä", "Kissä\u200b", "Kissäx", "Kissä" + strings.Repeat("x", 300)}
	sample := spelledSample(t, stored)
	before := contents(sample)
	for change, do := range changes {
		outcome := func(name string) string {
			b := sample.Clone()
			err := do(b, name)
			return fmt.Sprint(err == nil, contents(b))
		}
		want := outcome(stored)
		for _, name := range spellings {
			got := outcome(name)
			if model.SameName(name, stored) {
				if got != want {
					t.Errorf("%s %q:\n%s\nwant\n%s", change, name, got, want)
				}
				continue
			}
			for _, record := range before {
				if text := fmt.Sprint(record); !strings.Contains(got, text) {
					t.Errorf("%s %q changes %s", change, name, text)
				}
			}
		}
	}
}

// spelledSample returns a Catalog in which a cluster, an account, a user, a
// partition and a QOS have the same name.
func spelledSample(t *testing.T, name string) *Catalog {
	t.Helper()
	b := New()
	qos := model.BlankQOS()
	qos.Name = name
	must(t, b.AddClusters([]model.Cluster{{Name: name}}))
	must(t, b.AddQOS([]model.QOS{qos}))
	must(t, b.AddAccounts([]model.Account{{Name: name}, {Name: "sub"}, {Name: "other"}}))
	must(t, b.AddUsers([]model.User{{Name: name}, {Name: "ann"}, {Name: "new"}}))
	sub := assocIn(name, "sub", "", "")
	sub.ParentAccount = name
	must(t, b.AddAssociations([]model.Association{assocIn(name, name, "", ""), sub, assocIn(name, "other", "", ""),
		assocIn(name, "other", name, ""), assocIn(name, name, name, name), assocIn(name, "sub", "ann", ""), assocIn(name, name, "ann", "")}))
	must(t, b.AddCoordinators([]string{name, "sub"}, []string{"ann"}))
	must(t, b.AddCoordinators([]string{"other"}, []string{name}))
	return b
}

func assocIn(cluster, account, user, partition string) model.Association {
	a := model.BlankAssociation()
	a.Cluster, a.Account, a.User, a.Partition = cluster, account, user, partition
	return a
}

func changeAssociations(b *Catalog, f model.AssocFilter) error {
	change := model.BlankAssociation()
	change.Shares = 7
	_, err := b.ModifyAssociations(&f, &change)
	return err
}
