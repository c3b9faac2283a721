package handlers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"schedrestd/model"
)

// TestNamesInReads checks that requests find records in any spelling of a name,
// and show the stored one.
func TestNamesInReads(t *testing.T) {
	for path, want := range map[string]string{
		"account/LAB":                            `accounts lab`,
		"user/Alice":                             `users alice`,
		"qos/FAST":                               `qos fast`,
		"qos/2":                                  `qos fast`,
		"cluster/DEMO":                           `clusters demo`,
		"cluster/DEMO?cluster=Demo":              `clusters demo`,
		"wckey/K":                                `wckeys k`,
		"wckeys?cluster=DEMO&user=ALICE":         `wckeys k`,
		"clusters?cluster=DEMO":                  `clusters demo`,
		"associations?account=LAB&cluster=DEMO":  `associations lab lab`,
		"associations?user=ALICE":                `associations lab`,
		"associations?qos=FAST&user=ALICE":       `associations lab`,
		"association?default_qos=Fast&user=root": `associations`,
		"jobs?cluster=DEMO&account=LAB":          `jobs old waits`, // the fake selects only by cluster
		"instances?cluster=Demo":                 `instances i-1`,
		"account/LABS":                           ``,
		"qos/FASTER":                             ``,
		"cluster/DEM":                            ``,
	} {
		t.Run(path, func(t *testing.T) {
			w := serve(t, config(demo()), request(http.MethodGet, "/scheddb/v0.0.45/"+path, ""))
			var body map[string]json.RawMessage
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			if want == "" {
				if w.Code != http.StatusNotFound {
					t.Errorf("status %d: %s", w.Code, w.Body)
				}
				return
			}
			list, names, _ := strings.Cut(want, " ")
			var records []struct{ Name, Account, Instance_ID string }
			if err := json.Unmarshal(body[list], &records); err != nil {
				t.Fatalf("status %d: %v: %s", w.Code, err, w.Body)
			}
			var got []string
			for _, r := range records {
				got = append(got, r.Name+r.Instance_ID)
				if list == "associations" {
					got[len(got)-1] = r.Account
				}
			}
			if strings.Join(got, " ") != names {
				t.Errorf("got %q, want %q", got, names)
			}
		})
	}
}

// TestNamesInChanges checks that a change finds the existing records in any
// spelling of their names, and sends the stored spelling of each name that a
// record refers to.
func TestNamesInChanges(t *testing.T) {
	assoc := func(account, cluster, user string) model.Association {
		a := model.BlankAssociation()
		a.Account, a.Cluster, a.User = account, cluster, user
		return a
	}
	for _, tt := range []struct {
		name, method, path, body string
		want                     []string // the changes
	}{
		{name: "a change of an account", path: "accounts", body: `{"accounts": [{"name": "LAB", "description": "new", "organization": "uni"}]}`,
			want: []string{`modify account ["LAB"]: description "new", organization ""`}},
		{name: "its coordinators", path: "accounts", body: `{"accounts": [{"name": "LAB", "description": "the lab", "organization": "uni", "coordinators": [{"name": "BOB"}, {"name": "ALICE"}, {"name": "alice"}]}]}`,
			want: []string{`coordinators ["alice"] of ["lab"]`}},
		{name: "the same coordinators", path: "accounts", body: `{"accounts": [{"name": "lab", "description": "the lab", "organization": "uni", "coordinators": [{"name": "BOB"}, {"name": "EVE"}]}]}`},
		{name: "a new association", path: "associations", body: `{"associations": [{"account": "LAB", "cluster": "DEMO", "user": "BOB"}]}`,
			want: []string{"add association demo/lab/bob"}},
		{name: "an existing association", path: "associations", body: `{"associations": [{"account": "LAB", "cluster": "Demo", "user": "ALICE", "partition": "debug", "shares_raw": 5}]}`,
			want: []string{`modify association ["LAB"] of ["ALICE"] in ["debug"]: shares 5`}},
		{name: "an association by its number", path: "associations", body: `{"associations": [{"id": 4, "cluster": "DEMO", "user": "ALICE", "shares_raw": 6}]}`,
			want: []string{`modify association ["lab"] of ["alice"] in ["debug"]: shares 6`}},
		{name: "the parent that it has", path: "associations", body: `{"associations": [{"account": "lab", "cluster": "demo", "user": "", "parent_account": "ROOT"}]}`},
		{name: "a parent", path: "associations", body: `{"associations": [{"account": "new", "cluster": "demo", "user": "", "parent_account": "LAB"}]}`,
			want: []string{"add association demo/new", "parent lab"}},
		{name: "a user without a record", path: "associations", body: `{"associations": [{"account": "lab", "cluster": "demo", "user": "GHOST"}]}`,
			want: []string{"add association demo/lab/ghost"}},
		{name: "the default account that a user has", path: "users", body: `{"users": [{"name": "ALICE", "default": {"account": "LAB", "wckey": "K"}}]}`},
		{name: "a default account", path: "users", body: `{"users": [{"name": "CAROL", "default": {"account": "LAB"}}]}`,
			want: []string{`modify user ["CAROL"]: default lab`}},
		{name: "a user's workload keys", path: "users", body: `{"users": [{"name": "dan", "wckeys": [{"name": "K", "cluster": "DEMO", "user": "dan"}]}]}`,
			want: []string{"add user dan", "wckey k/demo/dan"}},
		{name: "a workload key of another user", path: "wckeys", body: `{"wckeys": [{"name": "K", "cluster": "DEMO", "user": "BOB"}]}`,
			want: []string{"add wckey k/demo/bob"}},
		{name: "a workload key that exists", path: "wckeys", body: `{"wckeys": [{"name": "K", "cluster": "DEMO", "user": "Alice"}]}`},
		{name: "two spellings of a new workload key", path: "wckeys", body: `{"wckeys": [{"name": "Q", "cluster": "demo", "user": "alice"}, {"name": "q", "cluster": "demo", "user": "bob"}]}`,
			want: []string{"add wckey Q/demo/alice", "add wckey Q/demo/bob"}},
		{name: "a cluster that exists", path: "clusters", body: `{"clusters": [{"name": "DEMO"}]}`},
		{name: "a QOS that preempts another", path: "qos", body: `{"qos": [{"name": "new", "preempt": {"list": ["FAST", "Normal"]}}]}`,
			want: []string{"add QOS new", "preempts 1,2"}},
		{name: "accounts with associations", path: "accounts_association", body: `{"association_condition": {"accounts": ["LAB", "new2", "lab"], "clusters": ["DEMO"], "association": {"parent": "LAB"}}}`,
			want: []string{`accounts ["lab" "new2"] in ["demo"] below lab`}},
		{name: "users with associations", path: "users_association", body: `{"association_condition": {"users": ["ALICE", "dan"], "accounts": ["LAB"], "clusters": ["DEMO"], "wckeys": ["K"]}, "user": {"defaultaccount": "Lab", "defaultwckey": "k"}}`,
			want: []string{`users ["alice" "dan"] of ["lab"] in ["demo"] with ["k"], default lab k`}},
		{name: "removal of a cluster", method: "DELETE", path: "cluster/OTHER", want: []string{`remove cluster ["other"]`}},
		{name: "removal of a QOS", method: "DELETE", path: "qos/FAST", want: []string{`remove QOS ["2"]`}},
		{name: "removal of associations", method: "DELETE", path: "associations?account=LAB&cluster=DEMO", want: []string{`remove associations of ["LAB"] in ["demo"]`}},
		{name: "removal of a workload key", method: "DELETE", path: "wckey/OTHER", want: []string{`remove wckey ["other"] of ["bob"]`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			f.recorded.accounts = append(f.recorded.accounts, model.Account{Name: "root"}, model.Account{Name: "new"})
			f.recorded.users = append(f.recorded.users, model.User{Name: "carol", AdminLevel: 1})
			f.recorded.associations = append(f.recorded.associations, model.Association{Account: "root", Cluster: "demo", ID: 1}, assoc("lab", "demo", "carol"), assoc("new", "other", "ghost"))
			method := tt.method
			if method == "" {
				method = http.MethodPost
			}
			w := serve(t, config(f), request(method, "/slurmdb/v0.0.45/"+tt.path, tt.body))
			if w.Code != http.StatusOK {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
			var got []string
			for _, change := range f.recorded.changes {
				got = append(got, describeNames(change)...)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("changes:\n%q\nwant:\n%q", got, tt.want)
			}
		})
	}
}

// describeNames describes a change, with all names in it.
func describeNames(change any) []string {
	switch ch := change.(type) {
	case model.Add[model.Association]:
		if parent := ch.Records[0].ParentAccount; parent != "" {
			return []string{describeChange(change), "parent " + parent}
		}
	case model.Add[model.User]:
		list := []string{describeChange(change)}
		for i := range ch.Records[0].WCKeys {
			list = append(list, "wckey "+wckeyName(&ch.Records[0].WCKeys[i]))
		}
		return list
	case model.Add[model.QOS]:
		return []string{describeChange(change), "preempts " + strings.Join(ch.Records[0].PreemptNames, ",")}
	case model.AddAccountsWithAssocs:
		return []string{fmt.Sprintf("accounts %q in %q below %s", ch.Accounts, ch.Clusters, ch.Assoc.ParentAccount)}
	case model.AddUsersWithAssocs:
		return []string{fmt.Sprintf("users %q of %q in %q with %q, default %s %s", ch.Users, ch.Accounts, ch.Clusters, ch.WCKeys, ch.User.DefaultAccount, ch.User.DefaultWCKey)}
	case model.Remove[model.Cluster]:
		return []string{fmt.Sprintf("remove cluster %q", ch.Filter.(model.ClusterFilter).Names)}
	case model.Remove[model.QOS]:
		return []string{fmt.Sprintf("remove QOS %q", ch.Filter.(model.QOSFilter).IDs)}
	case model.Remove[model.Association]:
		f := ch.Filter.(model.AssocFilter)
		return []string{fmt.Sprintf("remove associations of %q in %q", f.Accounts, f.Clusters)}
	case model.Remove[model.WCKey]:
		f := ch.Filter.(model.WCKeyFilter)
		return []string{fmt.Sprintf("remove wckey %q of %q", f.Names, f.Users)}
	}
	return []string{describeChange(change)}
}

// TestClusterRequests checks that the number of requests for clusters does not
// depend on the number of new records in a cluster.
func TestClusterRequests(t *testing.T) {
	for _, path := range []string{"config", "associations", "wckeys"} {
		requests := func(numUsers int) (n int) {
			f := demo()
			f.recorded.associations = append(f.recorded.associations, model.Association{Account: "lab", Cluster: "other"})
			var users, associations, keys []string
			for i := range numUsers {
				user := fmt.Sprintf("user%d", i)
				f.recorded.users = append(f.recorded.users, model.User{Name: user})
				users = append(users, fmt.Sprintf(`{"name": %q}`, user))
				associations = append(associations, fmt.Sprintf(`{"account": "lab", "cluster": "other", "user": %q}`, user))
				keys = append(keys, fmt.Sprintf(`{"name": "key", "cluster": "other", "user": %q}`, user))
			}
			list := func(name string, records []string) string {
				return fmt.Sprintf(`%q: [%s]`, name, strings.Join(records, ", "))
			}
			body := map[string]string{
				"config":       list("users", users) + ", " + list("associations", associations) + ", " + list("wckeys", keys),
				"associations": list("associations", associations),
				"wckeys":       list("wckeys", keys),
			}[path]
			w := serve(t, config(f), request(http.MethodPost, "/slurmdb/v0.0.45/"+path, "{"+body+"}"))
			if w.Code != http.StatusOK || len(f.recorded.changes) < numUsers {
				t.Errorf("%s: status %d, %d changes: %s", path, w.Code, len(f.recorded.changes), w.Body)
			}
			for _, filter := range f.recorded.filters {
				if _, isCluster := filter.(model.ClusterFilter); isCluster {
					n++
				}
			}
			return n
		}
		if few, many := requests(1), requests(5); few != many || few == 0 {
			t.Errorf("%s: %d requests for clusters with one user, %d with five", path, few, many)
		}
	}
}
