package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// sample returns a Catalog with the clusters c1 and c2, the account lab, the
// account bio below lab, the QOS high (number 2), and the user ann. In the
// cluster c1, ann has associations with bio (the default) and lab.
func sample(t *testing.T) *Catalog {
	t.Helper()
	b := New()
	high := model.BlankQOS()
	high.Name = "high"
	must(t, b.AddClusters([]model.Cluster{{Name: "c1"}, {Name: "c2"}}))
	must(t, b.AddQOS([]model.QOS{high}))
	must(t, b.AddAccounts([]model.Account{{Name: "lab", Description: "d", Organization: "o"}, {Name: "bio"}}))
	must(t, b.AddUsers([]model.User{{Name: "ann"}}))
	lab, bio := assoc("lab", ""), assoc("bio", "")
	bio.ParentAccount = "lab"
	lab.MaxJobs, lab.GrpJobs, lab.MaxTRESPJ, lab.QOSIDs, lab.DefaultQOSID = model.Some[uint32](5), model.Some[uint32](9), "1=4", []string{"1", "2"}, 2
	must(t, b.AddAssociations([]model.Association{lab, bio, assoc("bio", "ann"), assoc("lab", "ann")}))
	return b
}

func assoc(account, user string) model.Association {
	a := model.BlankAssociation()
	a.Account, a.Cluster, a.User = account, "c1", user
	return a
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// onlyAssoc returns the only association that f selects.
func onlyAssoc(t *testing.T, b *Catalog, f model.AssocFilter) model.Association {
	t.Helper()
	list := b.ListAssociations(&f)
	if len(list) != 1 {
		t.Fatalf("%d associations", len(list))
	}
	return list[0]
}

func assocFilter(account, user string) model.AssocFilter {
	return model.AssocFilter{Clusters: []string{"c1"}, Accounts: []string{account}, Users: []string{user}}
}

func TestTree(t *testing.T) {
	b := sample(t)
	ann := onlyAssoc(t, b, assocFilter("bio", "ann"))
	if ann.Lineage != "/lab/bio/0-ann/" || ann.MaxJobs != model.Some[uint32](5) || ann.MaxTRESPJ != "1=4" || ann.DefaultQOSID != 2 ||
		!slices.Equal(ann.QOSIDs, []string{"1", "2"}) || !ann.GrpJobs.Infinite ||
		ann.ParentID != onlyAssoc(t, b, assocFilter("bio", "")).ID || ann.IsDefault.Or(0) != 1 {
		t.Errorf("%+v", ann)
	}
	if a := onlyAssoc(t, b, assocFilter("lab", "ann")); a.IsDefault.Or(0) != 0 {
		t.Errorf("two defaults: %+v", a)
	}
	raw := assocFilter("bio", "ann")
	raw.Flags = model.AssocRawQOS | model.AssocWithoutParentLimits | model.AssocWithoutParentInfo
	if a := onlyAssoc(t, b, raw); a.MaxJobs.Set || a.MaxTRESPJ != "" || len(a.QOSIDs) != 0 || a.ParentID != 0 || a.DefaultQOSID != 0 {
		t.Errorf("without the parent: %+v", a)
	}
	if a := onlyAssoc(t, b, assocFilter("bio", "")); a.ParentAccount != "lab" || a.Shares != 1 {
		t.Errorf("%+v", a)
	}
	if a := onlyAssoc(t, b, assocFilter("lab", "")); a.ParentAccount != root || a.Lineage != "/lab/" {
		t.Errorf("%+v", a)
	}
}

func TestAssociationFilters(t *testing.T) {
	b := sample(t)
	for _, tt := range []struct {
		name string
		f    model.AssocFilter
		want []string
	}{
		{"all of a cluster", model.AssocFilter{Clusters: []string{"c1"}},
			[]string{"/", "/0-root/", "/lab/", "/lab/0-ann/", "/lab/bio/", "/lab/bio/0-ann/"}},
		{"names in other spellings", model.AssocFilter{Clusters: []string{"C1"}, Accounts: []string{"BIO"}, Users: []string{"Ann"}}, []string{"/lab/bio/0-ann/"}},
		{"parent in another spelling", model.AssocFilter{ParentAccounts: []string{"LAB"}}, []string{"/lab/bio/"}},
		{"another cluster", model.AssocFilter{Clusters: []string{"c2"}}, []string{"/", "/0-root/"}},
		{"account", model.AssocFilter{Accounts: []string{"bio"}}, []string{"/lab/bio/", "/lab/bio/0-ann/"}},
		{"account and below", model.AssocFilter{Accounts: []string{"lab"}, Flags: model.AssocSubAccounts},
			[]string{"/lab/", "/lab/0-ann/", "/lab/bio/", "/lab/bio/0-ann/"}},
		{"user", model.AssocFilter{Users: []string{"ann"}}, []string{"/lab/0-ann/", "/lab/bio/0-ann/"}},
		{"no user", model.AssocFilter{Clusters: []string{"c1"}, Users: []string{""}}, []string{"/", "/lab/", "/lab/bio/"}},
		{"any user", model.AssocFilter{Clusters: []string{"c1"}, Users: []string{}}, []string{"/0-root/", "/lab/0-ann/", "/lab/bio/0-ann/"}},
		{"defaults", model.AssocFilter{Users: []string{"ann"}, Flags: model.AssocOnlyDefaults}, []string{"/lab/bio/0-ann/"}},
		{"parent", model.AssocFilter{ParentAccounts: []string{"lab"}}, []string{"/lab/bio/"}},
		{"number", model.AssocFilter{IDs: []string{"5"}}, []string{"/lab/"}},
		{"QOS, also the parent's", model.AssocFilter{QOSIDs: []string{"2"}, Users: []string{"ann"}}, []string{"/lab/0-ann/", "/lab/bio/0-ann/"}},
		{"default QOS", model.AssocFilter{DefaultQOSIDs: []string{"2"}}, []string{"/lab/"}},
		{"partition", model.AssocFilter{Partitions: []string{"x"}}, nil},
		{"unknown", model.AssocFilter{Users: []string{"bob"}}, nil},
	} {
		var got []string
		for _, a := range b.ListAssociations(&tt.f) {
			got = append(got, a.Lineage)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

// TestChanges makes many changes to the Catalog that sample returns, and checks
// the result of each.
func TestChanges(t *testing.T) {
	ann, lab, bio := assocFilter("bio", "ann"), assocFilter("lab", ""), assocFilter("bio", "")
	modify := func(f model.AssocFilter, set func(*model.Association)) func(*Catalog) ([]string, error) {
		return func(b *Catalog) ([]string, error) {
			change := model.BlankAssociation()
			set(&change)
			return b.ModifyAssociations(&f, &change)
		}
	}
	usersTo := func(set model.AddUsersWithAssocs) func(*Catalog) ([]string, error) {
		return func(b *Catalog) ([]string, error) {
			set.Assoc = model.BlankAssociation()
			text, err := b.AddUsersTo(&set)
			return strings.Fields(text), err
		}
	}
	accountsTo := func(set model.AddAccountsWithAssocs) func(*Catalog) ([]string, error) {
		return func(b *Catalog) ([]string, error) {
			parent := set.Assoc.ParentAccount
			set.Assoc = model.BlankAssociation()
			set.Assoc.ParentAccount = parent
			text, err := b.AddAccountsTo(&set)
			return strings.Fields(text), err
		}
	}
	errOnly := func(err func(*Catalog) error) func(*Catalog) ([]string, error) {
		return func(b *Catalog) ([]string, error) { return nil, err(b) }
	}
	named := func(users ...string) *model.UserFilter {
		return &model.UserFilter{Assoc: model.AssocFilter{Users: users}}
	}
	for _, tt := range []struct {
		name   string
		change func(*Catalog) ([]string, error)
		want   string                // the returned names, separated by |
		number int                   // number of the expected error; 0: no error, -1: an error without a number
		holds  func(b *Catalog) bool // nil: nothing to check
	}{
		{"limits",
			modify(ann, func(a *model.Association) { a.MaxJobs, a.GrpTRES, a.Comment = model.Some[uint32](3), "1=2,4=1", "c" }),
			"C = c1         A = bio                  U = ann", 0,
			func(b *Catalog) bool {
				a := b.ListAssociations(&ann)[0]
				return a.MaxJobs == model.Some[uint32](3) && a.GrpTRES == "1=2,4=1" && a.Comment == "c"
			}},
		{"taking a limit back",
			modify(lab, func(a *model.Association) {
				a.MaxJobs, a.MaxTRESPJ = model.Infinite[uint32](), "2=7,1=18446744073709551615"
			}),
			"C = c1         A = lab", 0,
			func(b *Catalog) bool {
				a := b.ListAssociations(&ann)[0]
				return a.MaxJobs.Infinite && a.MaxTRESPJ == "2=7"
			}},
		{"nonsense as an amount", modify(lab, func(a *model.Association) { a.GrpTRES = "cpu=1" }), "", -1, nil},
		{"QOS", modify(lab, func(a *model.Association) { a.QOSIDs = []string{"-1"} }), "C = c1         A = lab", 0,
			func(b *Catalog) bool { return slices.Equal(b.ListAssociations(&ann)[0].QOSIDs, []string{"2"}) }},
		{"no QOS", modify(lab, func(a *model.Association) { a.QOSIDs = []string{""} }), "C = c1         A = lab", 0,
			func(b *Catalog) bool { return len(b.ListAssociations(&ann)[0].QOSIDs) == 0 }},
		{"unknown QOS", modify(lab, func(a *model.Association) { a.QOSIDs = []string{"9"} }), "", fault.InvalidQOS, nil},
		{"unknown default QOS", modify(lab, func(a *model.Association) { a.DefaultQOSID = 9 }), "", fault.InvalidQOS, nil},
		{"parent", modify(bio, func(a *model.Association) { a.ParentAccount = root }), "C = c1         A = bio", 0,
			func(b *Catalog) bool { return b.ListAssociations(&ann)[0].Lineage == "/bio/0-ann/" }},
		{"parent below", modify(lab, func(a *model.Association) { a.ParentAccount = "bio" }), "", fault.ChildOfParent, nil},
		{"itself as the parent", modify(lab, func(a *model.Association) { a.ParentAccount = "lab" }), "", fault.ChildOfParent, nil},
		{"unknown parent", modify(lab, func(a *model.Association) { a.ParentAccount = "x" }), "", fault.InvalidParent, nil},
		{"default account", errOnly(func(b *Catalog) error {
			change := model.BlankUser()
			change.DefaultAccount = "lab"
			_, err := b.ModifyUsers(named("ann"), &change)
			return err
		}), "", 0, func(b *Catalog) bool { return b.ListUsers(named("ann"))[0].DefaultAccount == "lab" }},
		{"default account without an association", errOnly(func(b *Catalog) error {
			change := model.BlankUser()
			change.DefaultAccount = root
			_, err := b.ModifyUsers(named("ann"), &change)
			return err
		}), "", fault.NoAssociation, nil},
		{"another name", func(b *Catalog) ([]string, error) {
			must(t, b.AddCoordinators([]string{"lab"}, []string{"ann"}))
			change := model.BlankUser()
			change.Name, change.AdminLevel = "eve", Operator
			return b.ModifyUsers(named("ann"), &change)
		}, "eve", 0, func(b *Catalog) bool {
			return b.Users["ann"] == nil && b.Users["eve"].AdminLevel == Operator &&
				len(b.ListAssociations(&model.AssocFilter{Users: []string{"eve"}})) == 2 &&
				b.Accounts["lab"].Coordinators[0].Name == "eve"
		}},
		{"a name that is taken", errOnly(func(b *Catalog) error {
			change := model.BlankUser()
			change.Name = root
			_, err := b.ModifyUsers(named("ann"), &change)
			return err
		}), "", -1, nil},
		{"account's texts", func(b *Catalog) ([]string, error) {
			return b.ModifyAccounts(&model.AccountFilter{Assoc: model.AssocFilter{Accounts: []string{"lab"}}}, &model.Account{Description: "new"})
		}, "lab", 0, func(b *Catalog) bool {
			return b.Accounts["lab"].Description == "new" && b.Accounts["lab"].Organization == "o"
		}},
		{"the same account", errOnly(func(b *Catalog) error { return b.AddAccounts([]model.Account{{Name: "lab"}}) }), "", -1, nil},
		{"account with a bad name", errOnly(func(b *Catalog) error { return b.AddAccounts([]model.Account{{Name: "a/b"}}) }), "", fault.BadName, nil},
		{"account without a name", errOnly(func(b *Catalog) error { return b.AddAccounts([]model.Account{{}}) }), "", -1, nil},
		{"the same user", errOnly(func(b *Catalog) error { return b.AddUsers([]model.User{{Name: "ann"}}) }), "", -1, nil},
		{"the same account in capitals", errOnly(func(b *Catalog) error { return b.AddAccounts([]model.Account{{Name: "LAB"}}) }), "", -1, nil},
		{"the same user in capitals", errOnly(func(b *Catalog) error { return b.AddUsers([]model.User{{Name: "Ann"}}) }), "", -1, nil},
		{"the same cluster in capitals", errOnly(func(b *Catalog) error { return b.AddClusters([]model.Cluster{{Name: "C1"}}) }), "", -1, nil},
		{"the same QOS in capitals", errOnly(func(b *Catalog) error { return b.AddQOS([]model.QOS{{Name: "HIGH"}}) }), "", -1, nil},
		{"an account in capitals again after its removal", errOnly(func(b *Catalog) error {
			must(t, b.AddAccounts([]model.Account{{Name: "phy"}}))
			if _, err := b.RemoveAccounts(&model.AccountFilter{Assoc: model.AssocFilter{Accounts: []string{"Phy"}}}); err != nil {
				return err
			}
			must(t, b.AddAccounts([]model.Account{{Name: "PHY"}}))
			return b.AddAccounts([]model.Account{{Name: "phy"}})
		}), "", -1, func(b *Catalog) bool { return b.Accounts["PHY"] != nil && b.Accounts["phy"] == nil }},
		{"an association in capitals", errOnly(func(b *Catalog) error { return b.AddAssociations([]model.Association{assoc("LAB", "ANN")}) }), "", -1, nil},
		{"users with associations in capitals",
			usersTo(model.AddUsersWithAssocs{AssocSet: model.AssocSet{Users: []string{"ANN", "bob"}, Accounts: []string{"BIO"}, Clusters: []string{"C1"}}, User: model.User{DefaultAccount: "Bio"}}),
			"Adding|User(s)|bob|Associations|C|=|c1|A|=|bio|U|=|bob", 0,
			func(b *Catalog) bool { return b.ListUsers(named("BOB"))[0].DefaultAccount == "bio" }},
		{"accounts in capitals below another", accountsTo(model.AddAccountsWithAssocs{AssocSet: model.AssocSet{Accounts: []string{"LAB", "phy"}, Clusters: []string{"C1"},
			Assoc: model.Association{ParentAccount: "LAB"}}}),
			"Adding|Account(s)|phy|Associations|C|=|c1|A|=|phy", 0,
			func(b *Catalog) bool {
				return b.ListAssociations(&model.AssocFilter{Accounts: []string{"PHY"}})[0].Lineage == "/lab/phy/"
			}},
		{"coordinators in capitals", errOnly(func(b *Catalog) error { return b.AddCoordinators([]string{"LAB"}, []string{"ANN", "ann"}) }), "", 0,
			func(b *Catalog) bool {
				return len(b.Accounts["lab"].Coordinators) == 1 && b.Accounts["lab"].Coordinators[0].Name == "ann"
			}},
		{"a default account in capitals", errOnly(func(b *Catalog) error {
			change := model.BlankUser()
			change.DefaultAccount = "LAB"
			_, err := b.ModifyUsers(named("ANN"), &change)
			return err
		}), "", 0, func(b *Catalog) bool { return b.ListUsers(named("ann"))[0].DefaultAccount == "lab" }},
		{"another spelling of a name", errOnly(func(b *Catalog) error {
			change := model.BlankUser()
			change.Name = "Ann"
			_, err := b.ModifyUsers(named("ann"), &change)
			return err
		}), "", 0, func(b *Catalog) bool {
			return b.Users["ann"] == nil && b.Users["Ann"] != nil && len(b.ListAssociations(&model.AssocFilter{Users: []string{"ann"}})) == 2
		}},
		{"removal of a QOS in capitals", func(b *Catalog) ([]string, error) { return b.RemoveQOS(&model.QOSFilter{Names: []string{"High"}}) }, "high", 0, nil},
		{"user with a workload key", errOnly(func(b *Catalog) error {
			return b.AddUsers([]model.User{{Name: "bob", WCKeys: []model.WCKey{{Name: "w"}}}})
		}), "", fault.NotSupported, nil},
		{"association of an unknown user",
			errOnly(func(b *Catalog) error { return b.AddAssociations([]model.Association{assoc("lab", "bob")}) }),
			"", fault.UnknownUser, nil},
		{"association of an unknown account",
			errOnly(func(b *Catalog) error { return b.AddAssociations([]model.Association{assoc("x", "")}) }), "",
			fault.InvalidAccount, nil},
		{"association that exists",
			errOnly(func(b *Catalog) error { return b.AddAssociations([]model.Association{assoc("lab", "ann")}) }),
			"", -1, nil},
		{"users with associations",
			usersTo(model.AddUsersWithAssocs{AssocSet: model.AssocSet{Users: []string{"ann", "bob"}, Accounts: []string{"bio"}, Clusters: []string{"c1"}}}),
			"Adding|User(s)|bob|Associations|C|=|c1|A|=|bio|U|=|bob", 0,
			func(b *Catalog) bool { return b.ListUsers(named("bob"))[0].DefaultAccount == "bio" }},
		{"users in partitions",
			usersTo(model.AddUsersWithAssocs{AssocSet: model.AssocSet{Users: []string{"ann"}, Accounts: []string{"bio"}, Clusters: []string{"c1"}, Partitions: []string{"p"}}}),
			"Associations|C|=|c1|A|=|bio|U|=|ann|P|=|p", 0, func(b *Catalog) bool {
				return b.ListAssociations(&model.AssocFilter{Partitions: []string{"p"}})[0].Lineage == "/lab/bio/0-ann/p/"
			}},
		{"users that have all",
			usersTo(model.AddUsersWithAssocs{AssocSet: model.AssocSet{Users: []string{"ann"}, Accounts: []string{"bio"}, Clusters: []string{"c1"}}}),
			"", 0, nil},
		{"users where the account is not",
			usersTo(model.AddUsersWithAssocs{AssocSet: model.AssocSet{Users: []string{"ann"}, Accounts: []string{"bio"}}}),
			"", fault.InvalidAccount, nil},
		{"users with workload keys",
			usersTo(model.AddUsersWithAssocs{AssocSet: model.AssocSet{Users: []string{"ann"}, Accounts: []string{"bio"}, WCKeys: []string{"w"}}}),
			"", fault.NotSupported, nil},
		{"accounts in all clusters", accountsTo(model.AddAccountsWithAssocs{AssocSet: model.AssocSet{Accounts: []string{"lab", "phy"}}}),
			"Adding|Account(s)|phy|Associations|C|=|c2|A|=|lab|C|=|c1|A|=|phy|C|=|c2|A|=|phy", 0,
			func(b *Catalog) bool { return b.Accounts["phy"].Organization == "phy" }},
		{"accounts in an unknown cluster",
			accountsTo(model.AddAccountsWithAssocs{AssocSet: model.AssocSet{Accounts: []string{"phy"}, Clusters: []string{"c9"}}}),
			"", -1, nil},
		{"removal of the default", func(b *Catalog) ([]string, error) { return b.RemoveAssociations(&ann) },
			"C = c1         A = bio                  U = ann", fault.DefaultAccount,
			func(b *Catalog) bool { return len(b.ListAssociations(&ann)) == 1 }},
		{"removal of an account with those below", func(b *Catalog) ([]string, error) {
			return b.RemoveAccounts(&model.AccountFilter{Assoc: model.AssocFilter{Accounts: []string{"lab"}}})
		}, "lab", 0, func(b *Catalog) bool {
			return b.Accounts["lab"] == nil && b.Accounts["bio"] != nil && len(b.ListAssociations(&model.AssocFilter{Clusters: []string{"c1"}})) == 2
		}},
		{"removal of a default account", func(b *Catalog) ([]string, error) {
			return b.RemoveAccounts(&model.AccountFilter{Assoc: model.AssocFilter{Accounts: []string{"bio"}}})
		}, "C = c1         A = bio                  U = ann", fault.DefaultAccount, func(b *Catalog) bool { return b.Accounts["bio"] != nil }},
		{"removal of root", func(b *Catalog) ([]string, error) {
			return b.RemoveAccounts(&model.AccountFilter{Assoc: model.AssocFilter{Accounts: []string{root}}})
		}, "", fault.AccessDenied, nil},
		{"removal of a user", func(b *Catalog) ([]string, error) { return b.RemoveUsers(named("ann")) }, "ann", 0,
			func(b *Catalog) bool { return len(b.ListAssociations(&model.AssocFilter{Users: []string{"ann"}})) == 0 }},
		{"removal of an unknown user", func(b *Catalog) ([]string, error) { return b.RemoveUsers(named("bob")) }, "", 0, nil},
		{"removal of a QOS", func(b *Catalog) ([]string, error) { return b.RemoveQOS(&model.QOSFilter{Names: []string{"high"}}) }, "high", 0,
			func(b *Catalog) bool {
				a := b.ListAssociations(&lab)[0]
				return a.DefaultQOSID == 0 && slices.Equal(a.QOSIDs, []string{"1"})
			}},
		{"removal of a cluster", func(b *Catalog) ([]string, error) {
			return b.RemoveClusters(&model.ClusterFilter{Names: []string{"c1"}}), nil
		}, "c1", 0, func(b *Catalog) bool { return len(b.Associations) == 2 }},
		{"coordinators of an account below",
			errOnly(func(b *Catalog) error { return b.AddCoordinators([]string{"lab"}, []string{"ann"}) }), "", 0,
			func(b *Catalog) bool {
				a := b.ListAccounts(&model.AccountFilter{Flags: model.AccountWithCoordinators, Assoc: model.AssocFilter{Accounts: []string{"bio"}}})
				u := b.ListUsers(&model.UserFilter{WithCoordinates: true, Assoc: model.AssocFilter{Users: []string{"ann"}}})
				return len(a[0].Coordinators) == 1 && a[0].Coordinators[0].Direct.Or(1) == 0 && len(u[0].Coordinates) == 2
			}},
		{"unknown coordinator",
			errOnly(func(b *Catalog) error { return b.AddCoordinators([]string{"lab"}, []string{"bob"}) }), "",
			fault.UnknownUser, nil},
		{"no coordinator any more", func(b *Catalog) ([]string, error) {
			must(t, b.AddCoordinators([]string{"lab"}, []string{"ann"}))
			return b.RemoveCoordinators([]string{"lab"}, []string{"ann"}), nil
		}, "U = ann A = lab", 0, func(b *Catalog) bool { return len(b.Accounts["lab"].Coordinators) == 0 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := sample(t)
			before := fmt.Sprint(contents(b))
			c := b.Clone()
			names, err := tt.change(c)
			e, _ := errors.AsType[*errs.Error](err)
			if got := strings.Join(names, "|"); got != tt.want {
				t.Errorf("%q", got)
			}
			switch {
			case tt.number == 0 && err != nil, tt.number != 0 && err == nil, tt.number > 0 && e.Number != tt.number:
				t.Errorf("error %#v", err)
			case tt.holds != nil && !tt.holds(c):
				t.Errorf("%v", contents(c))
			}
			if after := fmt.Sprint(contents(b)); after != before {
				t.Errorf("the change of a clone changed the original:\n%s\n%s", before, after)
			}
		})
	}
}

// contents returns the records in b, without pointers.
func contents(b *Catalog) (list []any) {
	for _, r := range Sorted(b.Clusters) {
		list = append(list, *r)
	}
	for _, r := range Sorted(b.Accounts) {
		list = append(list, *r)
	}
	for _, r := range Sorted(b.Users) {
		list = append(list, *r)
	}
	for _, r := range Sorted(b.Associations) {
		list = append(list, *r)
	}
	for _, r := range Sorted(b.QOS) {
		list = append(list, *r)
	}
	return list
}

func TestQOS(t *testing.T) {
	b := sample(t)
	add := model.BlankQOS()
	add.Name, add.Description, add.Priority, add.MaxWallPJ, add.MaxTRESPU, add.PreemptNames = "fast", "d",
		model.Some[uint32](7), model.Some[uint32](60), "1=8", []string{"1"}
	must(t, b.AddQOS([]model.QOS{add}))
	get := func() model.QOS { return b.ListQOS(&model.QOSFilter{Names: []string{"fast"}})[0] }
	if q := get(); q.ID != 3 || q.Priority.Number != 7 || q.MaxWallPJ.Number != 60 || !q.GrpJobs.Infinite || q.UsageFactor != 1 || !q.PreemptIDs.Has(1) || q.PreemptIDs.Has(2) || q.Flags != 0 {
		t.Errorf("%+v", q)
	}
	modify := func(set func(*model.QOS)) error {
		change := model.BlankQOS()
		set(&change)
		_, err := b.ModifyQOS(&model.QOSFilter{IDs: []string{"3"}}, &change)
		return err
	}
	must(t, modify(func(q *model.QOS) { q.Flags, q.MaxTRESPU = 4, "1=-1,2=5" }))
	must(t, modify(func(q *model.QOS) { q.Flags = addFlags | 8 }))
	must(t, modify(func(q *model.QOS) { q.Flags = removeFlags | 4 }))
	must(t, modify(func(q *model.QOS) { q.PreemptNames = []string{"+2"} }))
	if q := get(); q.Flags != 8 || q.MaxTRESPU != "2=5" || !q.PreemptIDs.Has(1) || !q.PreemptIDs.Has(2) || q.Description != "d" || q.MaxWallPJ.Number != 60 {
		t.Errorf("%+v", q)
	}
	change := model.BlankQOS()
	change.PreemptNames = []string{"3"}
	_, err := b.Clone().ModifyQOS(&model.QOSFilter{Names: []string{"normal"}}, &change)
	if e, _ := errors.AsType[*errs.Error](err); e == nil || e.Number != fault.PreemptionLoop {
		t.Errorf("a circle: %v", err)
	}
	must(t, b.AddQOS([]model.QOS{{Name: "next", Flags: model.QOSFlagsNotSet}}))
	if _, err := b.RemoveQOS(&model.QOSFilter{Names: []string{"next"}}); err != nil {
		t.Error(err)
	}
	must(t, b.AddQOS([]model.QOS{{Name: "again", Flags: model.QOSFlagsNotSet}}))
	if q := b.ListQOS(&model.QOSFilter{Names: []string{"again"}}); q[0].ID != 5 {
		t.Errorf("the number %d is used again", q[0].ID)
	}
}
