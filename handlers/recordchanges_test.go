package handlers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/internal/feature"
	"schedrestd/model"
)

// describeChange describes a change: its kind and its records.
func describeChange(change any) string {
	names := func(kind string, n int, name func(int) string) string {
		list := make([]string, n)
		for i := range list {
			list[i] = name(i)
		}
		return "add " + kind + " " + strings.Join(list, " ")
	}
	switch c := change.(type) {
	case model.Add[model.Account]:
		return names("account", len(c.Records), func(i int) string { return accountName(&c.Records[i]) })
	case model.Add[model.Association]:
		return names("association", len(c.Records), func(i int) string {
			return strings.TrimRight(c.Records[i].Cluster+"/"+c.Records[i].Account+"/"+c.Records[i].User, "/")
		})
	case model.Add[model.Cluster]:
		return names("cluster", len(c.Records), func(i int) string { return c.Records[i].Name })
	case model.Add[model.QOS]:
		return names("QOS", len(c.Records), func(i int) string { return c.Records[i].Name })
	case model.Add[model.User]:
		return names("user", len(c.Records), func(i int) string { return userName(&c.Records[i]) })
	case model.Add[model.WCKey]:
		return names("wckey", len(c.Records), func(i int) string { return wckeyName(&c.Records[i]) })
	case model.AddCoordinators:
		return fmt.Sprintf("coordinators %q of %q", c.Users, c.Accounts)
	case model.Modify[model.Account]:
		return fmt.Sprintf("modify account %q: description %q, organization %q", c.Filter.(model.AccountFilter).Assoc.Accounts, string(c.Record.Description), string(c.Record.Organization))
	case model.Modify[model.Association]:
		f := c.Filter.(model.AssocFilter)
		return fmt.Sprintf("modify association %q of %q in %q: shares %d", f.Accounts, f.Users, f.Partitions, c.Record.Shares)
	case model.Modify[model.User]:
		return fmt.Sprintf("modify user %q: default %s", c.Filter.(model.UserFilter).Assoc.Users, c.Record.DefaultAccount)
	}
	return fmt.Sprintf("%T", change)
}

// TestRecordChanges checks which changes a request makes. A record that refers
// to a missing record must be refused. The error must name the place of this
// reference in the body. slurmdbd itself would create such records, or create
// nothing and report success.
func TestRecordChanges(t *testing.T) {
	refused := errs.New(errs.Denied, "no")
	tests := []struct {
		name, path, body string
		sched            bool // use this project's spelling, which is stricter
		refuse           func(change any) ([]string, error)
		status           int
		source           string // source of the error, or of all warnings, separated by spaces
		changes          []string
	}{
		{name: "an association of a user without an account", path: "associations", body: `{"associations": [{"user": "alice", "cluster": "demo", "shares_raw": 7}]}`, status: 422, source: "#/associations/0/account"},
		{name: "an association of a user without a cluster", path: "associations", body: `{"associations": [{"user": "alice", "account": "lab", "shares_raw": 7}]}`, status: 422, source: "#/associations/0/cluster"},
		{name: "an association of an unknown account", path: "associations", body: `{"associations": [{"account": "nosuch", "cluster": "demo", "user": "bob"}]}`, status: 404, source: "#/associations/0/account"},
		{name: "an association in an unknown cluster", path: "associations", body: `{"associations": [{"account": "lab", "cluster": "nosuch", "user": "bob"}]}`, status: 404, source: "#/associations/0/cluster"},
		{name: "an association of an unknown user", sched: true, path: "associations", body: `{"associations": [{"account": "lab", "cluster": "demo", "user": "nosuch"}]}`, status: 404, source: "#/associations/0/user"},
		{name: "an association with an account that is not in the cluster", path: "associations", body: `{"associations": [{"account": "lab", "cluster": "other", "user": "bob"}]}`, status: 404, source: "#/associations/0/account"},
		{name: "an association below an unknown account", path: "associations", body: `{"associations": [{"account": "lab", "cluster": "other", "user": "", "parent_account": "nosuch"}]}`, status: 404, source: "#/associations/0/parent_account"},
		{name: "a change of the account above to an unknown one", path: "associations", body: `{"associations": [{"account": "lab", "cluster": "demo", "user": "", "parent_account": "nosuch"}]}`, status: 404, source: "#/associations/0/parent_account"},
		{name: "an association", path: "associations", body: `{"associations": [{"account": "lab", "cluster": "demo", "user": "bob"}]}`, status: 200, changes: []string{"add association demo/lab/bob"}},
		{name: "an account limited to a partition", path: "associations", body: `{"associations": [{"account": "lab", "cluster": "demo", "user": "", "partition": "debug"}]}`, status: 422, source: "#/associations/0/partition"},
		{name: "an account below itself", path: "associations", body: `{"associations": [{"account": "lab", "cluster": "demo", "user": "", "parent_account": "lab"}]}`, status: 422, source: "#/associations/0/parent_account"},
		{name: "an account below itself, in capitals", path: "associations", body: `{"associations": [{"account": "lab", "cluster": "demo", "user": "", "parent_account": "LAB"}]}`, status: 422, source: "#/associations/0/parent_account"},
		{name: "the account root below another", path: "associations", body: `{"associations": [{"account": "root", "cluster": "demo", "user": "", "parent_account": "lab"}]}`, status: 422, source: "#/associations/0/parent_account"},
		{name: "an association of a user below another account", path: "associations", body: `{"associations": [{"account": "lab", "cluster": "demo", "user": "bob", "parent_account": "root"}]}`, status: 200, source: "#/associations/0/parent_account", changes: []string{"add association demo/lab/bob"}},
		{name: "a change of an account", path: "associations", body: `{"associations": [{"account": "lab", "cluster": "demo", "user": "", "shares_raw": 5}]}`, status: 200, changes: []string{`modify association ["lab"] of [""] in [""]: shares 5`}},
		{name: "an account without a description", path: "accounts", body: `{"accounts": [{"name": "lab", "description": "", "organization": "uni"}]}`, status: 200, changes: []string{`modify account ["lab"]: description "\x00", organization ""`}},
		{name: "a new account without a description", path: "accounts", body: `{"accounts": [{"name": "new", "description": "", "organization": "uni"}]}`, status: 200, source: "#/accounts/0/description", changes: []string{"add account new"}},
		{name: "an association by its number", path: "associations", body: `{"associations": [{"id": 3, "user": "", "shares_raw": 6}]}`, status: 200, changes: []string{`modify association ["lab"] of [""] in [""]: shares 6`}},
		{name: "an association by its number and cluster", path: "associations", body: `{"associations": [{"id": 4, "cluster": "demo", "user": "alice", "shares_raw": 6}]}`, status: 200, changes: []string{`modify association ["lab"] of ["alice"] in ["debug"]: shares 6`}},
		{name: "an association by the number of another", path: "associations", body: `{"associations": [{"id": 4, "user": "bob", "shares_raw": 6}]}`, status: 404, source: "#/associations/0/id"},
		{name: "an association by an unknown number", path: "associations", body: `{"associations": [{"id": 99, "user": "", "shares_raw": 6}]}`, status: 404, source: "#/associations/0/id"},
		{name: "an association with the number of another", path: "associations", body: `{"associations": [{"id": 4, "account": "lab", "cluster": "demo", "user": "", "shares_raw": 6}]}`, status: 200, source: "#/associations/0/id", changes: []string{`modify association ["lab"] of [""] in [""]: shares 6`}},
		{name: "an account with a comma", path: "accounts", body: `{"accounts": [{"name": "a,b", "description": "d", "organization": "o"}]}`, status: 422, source: "#/accounts/0/name"},
		{name: "an account with a line break", path: "accounts", body: `{"accounts": [{"name": "a\nb", "description": "d", "organization": "o"}]}`, status: 422, source: "#/accounts/0/name"},
		{name: "a user with too long a name", path: "users", body: `{"users": [{"name": "` + strings.Repeat("x", 256) + `"}]}`, status: 422, source: "#/users/0/name"},
		{name: "a workload key of a user with too long a name", path: "wckeys", body: `{"wckeys": [{"name": "k", "cluster": "c", "user": "` + strings.Repeat("x", 256) + `"}]}`, status: 422, source: "#/wckeys/0/user"},
		{name: "a user with a comma", path: "users", body: `{"users": [{"name": "a,b"}]}`, status: 422, source: "#/users/0/name"},
		{name: "a limit without a count", path: "qos", body: `{"qos": [{"name": "fast", "limits": {"max": {"tres": {"total": [{"type": "cpu"}]}}}}]}`, status: 422, source: "#/qos/0/limits"},
		{name: "a limit whose count is null", path: "associations", body: `{"associations": [{"account": "lab", "cluster": "demo", "user": "", "max": {"tres": {"total": [{"type": "cpu", "count": null}]}}}]}`, status: 422, source: "#/associations/0"},
		{name: "a new QOS with a comma", path: "qos", body: `{"qos": [{"name": "a,b"}]}`, status: 422, source: "#/qos/0/name"},
		{name: "a new QOS with a number", path: "qos", body: `{"qos": [{"name": "new", "id": 77}]}`, status: 404, source: "#/qos/0/id"},
		{name: "a load of a QOS with the number of another database", path: "config", body: `{"qos": [{"name": "new", "id": 77}]}`, status: 200, changes: []string{"add QOS new"}},
		{name: "a QOS with NOT_SET and a flag", path: "qos", body: `{"qos": [{"name": "fast", "flags": ["NOT_SET", "NO_DECAY"]}]}`, status: 422, source: "#/qos/0/flags"},
		{name: "a QOS with NOT_SET", path: "qos", body: `{"qos": [{"name": "fast", "flags": ["NOT_SET"]}]}`, status: 200, source: "#/qos/0"},
		{name: "a QOS with the factor 0", path: "qos", body: `{"qos": [{"name": "fast", "limits": {"factor": 0}}]}`, status: 200, source: "#/qos/0/limits/factor"},
		{name: "a QOS that the daemon does not change", path: "qos", body: `{"qos": [{"name": "fast", "limits": {"factor": 2}}]}`, refuse: func(any) ([]string, error) { return nil, nil }, status: 200, source: "#/qos/0", changes: []string{"model.Modify[schedrestd/model.QOS]"}},
		{name: "accounts below one that is not in the cluster", path: "accounts_association", body: `{"association_condition": {"accounts": ["new"], "clusters": ["other"], "association": {"parent": "lab"}}}`, status: 404, source: "#/association_condition/association/parent"},
		{name: "users of an account that is not in the cluster", path: "users_association", body: `{"association_condition": {"users": ["carol"], "accounts": ["lab"], "clusters": ["other"]}, "user": {}}`, status: 404, source: "#/association_condition/accounts"},
		{name: "users with another default account", path: "users_association", body: `{"association_condition": {"users": ["carol"], "accounts": ["lab"]}, "user": {"defaultaccount": "root"}}`, status: 422, source: "#/user/defaultaccount"},
		{name: "users with another default workload key", path: "users_association", body: `{"association_condition": {"users": ["carol"], "accounts": ["lab"], "wckeys": ["k"]}, "user": {"defaultwckey": "other"}}`, status: 422, source: "#/user/defaultwckey"},
		{name: "a default account without an association", path: "users", body: `{"users": [{"name": "bob", "default": {"account": "lab"}}]}`, status: 404, source: "#/users/0/default/account"},
		{name: "a default workload key that is another's", path: "users", body: `{"users": [{"name": "bob", "default": {"wckey": "k"}}]}`, status: 404, source: "#/users/0/default/wckey"},
		{name: "an unknown coordinator", path: "accounts", body: `{"accounts": [{"name": "lab", "description": "the lab", "organization": "uni", "coordinators": [{"name": "alice"}, {"name": "nosuch"}]}]}`, status: 404, source: "#/accounts/0/coordinators/1"},
		{name: "a workload key of an unknown user", sched: true, path: "wckeys", body: `{"wckeys": [{"name": "w", "cluster": "demo", "user": "nosuch"}]}`, status: 404, source: "#/wckeys/0/user"},
		{name: "a workload key in an unknown cluster", path: "wckeys", body: `{"wckeys": [{"name": "w", "cluster": "nosuch", "user": "bob"}]}`, status: 404, source: "#/wckeys/0/cluster"},
		{name: "several, of which one is refused", path: "wckeys", body: `{"wckeys": [{"name": "w", "cluster": "demo", "user": "bob"}, {"name": "v", "cluster": "demo", "user": ""}]}`, status: 422, source: "#/wckeys/1/user", changes: []string{"add wckey w/demo/bob"}},
		{name: "a change that the daemon refuses", path: "clusters", body: `{"clusters": [{"name": "new"}]}`, refuse: func(any) ([]string, error) { return nil, refused }, status: 403, source: "#/clusters/0", changes: []string{"add cluster new"}},
		{name: "a load of deleted records", path: "config", body: `{"clusters": [{"name": "c", "flags": ["DELETED"]}], "qos": [{"name": "q", "flags": ["DELETED"]}], "accounts": [{"name": "a", "description": "", "organization": "", "flags": ["DELETED"]}],
			"users": [{"name": "u", "flags": ["DELETED"]}], "wckeys": [{"name": "w", "cluster": "demo", "user": "bob", "flags": ["DELETED"]}], "associations": [{"account": "lab", "cluster": "demo", "user": "bob", "flags": ["DELETED"]}]}`,
			status: 200, source: "#/clusters/0/flags #/qos/0/flags #/accounts/0/flags #/users/0/flags #/wckeys/0/flags #/associations/0/flags"},
		{name: "a load of records that refer to each other", path: "config", body: `{"clusters": [{"name": "c"}], "accounts": [{"name": "a", "description": "d", "organization": "o", "coordinators": [{"name": "u"}]}],
			"users": [{"name": "u", "default": {"account": "a"}}], "associations": [{"account": "a", "cluster": "c", "user": ""}, {"account": "a", "cluster": "c", "user": "u"}]}`,
			status: 200, changes: []string{"add account a", "add user u", `coordinators ["u"] of ["a"]`, // rolled back
				"add cluster c", "add account a", "add user u", "add association c/a", "add association c/a/u", `modify user ["u"]: default a`, `coordinators ["u"] of ["a"]`}},
		{name: "a coordinator of several accounts", path: "accounts", body: `{"accounts": [{"name": "a", "description": "d", "organization": "o", "coordinators": [{"name": "bob"}, {"name": "alice"}]}, {"name": "b", "description": "d", "organization": "o", "coordinators": [{"name": "bob"}]}]}`,
			status: 200, changes: []string{"add account a", "add account b", `coordinators ["alice"] of ["a"]`, `coordinators ["bob"] of ["a" "b"]`}},
		{name: "an account and an association below it", path: "associations", body: `{"associations": [{"account": "lab", "cluster": "demo", "user": "", "shares_raw": 6}, {"account": "lab", "cluster": "demo", "user": "alice", "partition": "debug", "shares_raw": 7}]}`,
			status: 200, changes: []string{`modify association ["lab"] of [""] in [""]: shares 6`, `modify association ["lab"] of ["alice"] in ["debug"]: shares 7`, `modify association ["lab"] of [""] in [""]: shares 6`, `modify association ["lab"] of ["alice"] in ["debug"]: shares 7`}},
		{name: "accounts that move", path: "config", body: `{"accounts": [{"name": "a", "description": "d", "organization": "o"}, {"name": "b", "description": "d", "organization": "o"}],
			"associations": [{"account": "a", "cluster": "demo", "user": ""}, {"account": "b", "cluster": "demo", "user": ""}, {"account": "lab", "cluster": "demo", "user": "", "parent_account": "a"}, {"account": "b", "cluster": "demo", "user": "", "parent_account": "a"}]}`,
			status: 422, source: "#/associations/3", changes: []string{"add account a", "add account b", "add association demo/a", "add association demo/b", `modify association ["lab"] of [""] in [""]: shares 4294967294`}},
		{name: "a record twice", path: "qos", body: `{"qos": [{"name": "fast", "priority": 5}, {"name": "fast", "priority": 6}]}`, status: 422, source: "#/qos/1", changes: []string{"model.Modify[schedrestd/model.QOS]", "model.Modify[schedrestd/model.QOS]"}},
		{name: "a load of which one is refused", path: "config", body: `{"users": [{"name": "u"}], "associations": [{"account": "nosuch", "cluster": "demo", "user": "u"}]}`,
			status: 404, source: "#/associations/0/account", changes: []string{"add user u"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			f.recorded.associations = append(f.recorded.associations, model.Association{Account: "root", Cluster: "demo", ID: 1})
			f.recorded.refuse = tt.refuse
			prefix := "/slurmdb/v0.0.45/"
			if tt.sched {
				prefix = "/scheddb/v0.0.45/"
			}
			w := serve(t, config(f), request(http.MethodPost, prefix+tt.path, tt.body))
			body := envelope(t, w.Body.Bytes())
			if w.Code != tt.status {
				t.Errorf("status %d, want %d: %+v", w.Code, tt.status, body.Errors)
			}
			var sources, changes []string
			for _, e := range body.Errors {
				sources = append(sources, e.Source)
				if !strings.HasSuffix(e.Description, "nothing was changed") {
					t.Errorf("the error does not say that nothing was changed: %s", e.Description)
				}
			}
			for _, e := range body.Warnings {
				sources = append(sources, e.Source)
			}
			for _, c := range f.recorded.changes {
				changes = append(changes, describeChange(c))
			}
			if got := strings.Join(sources, " "); got != tt.source {
				t.Errorf("about %q, want %q: %+v", got, tt.source, body)
			}
			if d := cmp.Diff(tt.changes, changes); d != "" {
				t.Errorf("changes (-want, +got):\n%s", d)
			}
			if n := len(f.recorded.committed); n > 0 && f.recorded.committed[n-1] != (tt.status == http.StatusOK) {
				t.Errorf("kept: %v", f.recorded.committed)
			}
		})
	}
}

// TestOwnWCKeys checks that a client can send back an answer with the workload
// keys that slurmdbd makes itself, and that this makes none of them.
func TestOwnWCKeys(t *testing.T) {
	const own = `{"name": "", "cluster": "demo", "user": "%[1]s"}, {"name": "*", "cluster": "demo", "user": "%[1]s"}, {"name": "*k", "cluster": "demo", "user": "%[1]s"}`
	alice, newcomer := fmt.Sprintf(own, "alice"), fmt.Sprintf(own, "u")
	const k = `{"name": "k", "cluster": "demo", "user": "alice"}`
	for _, tt := range []struct {
		path, body string
		sources    string // of the warnings
		changes    []string
	}{
		{"wckeys", `{"wckeys": [` + alice + `, ` + k + `]}`, "#/wckeys/0 #/wckeys/1 #/wckeys/2 #/wckeys/3", nil},
		{"config", `{"wckeys": [` + alice + `, ` + k + `]}`, "#/wckeys/0 #/wckeys/1 #/wckeys/2 #/wckeys/3", nil},
		{"config", `{"users": [{"name": "alice", "default": {"wckey": "*k"}}]}`, "#/users/0", nil},
		{"config", `{"users": [{"name": "bob", "default": {"wckey": "*other"}}]}`, "#/users/0", []string{`modify user ["bob"]: default `}},
		{"users", `{"users": [{"name": "u", "default": {"wckey": "*"}, "wckeys": [` + newcomer + `]}]}`, "#/users/0/wckeys/0 #/users/0/wckeys/1 #/users/0/wckeys/2", []string{"add user u"}},
	} {
		for _, segment := range []string{"slurmdb", "scheddb"} {
			f := demo()
			f.recorded.wckeys = append(f.recorded.wckeys, model.WCKey{Cluster: "demo", User: "alice"}, model.WCKey{Name: "*", Cluster: "demo", User: "alice"},
				model.WCKey{Name: "*k", Cluster: "demo", User: "alice"})
			w := serve(t, config(f), request(http.MethodPost, "/"+segment+"/v0.0.45/"+tt.path, tt.body))
			var sources, changes []string
			for _, warning := range envelope(t, w.Body.Bytes()).Warnings {
				sources = append(sources, warning.Source)
			}
			for _, c := range f.recorded.changes {
				changes = append(changes, describeChange(c))
				if add, ok := c.(model.Add[model.User]); ok && len(add.Records[0].WCKeys) > 0 {
					t.Errorf("%s: workload keys %+v", tt.body, add.Records[0].WCKeys)
				}
			}
			if d := cmp.Diff(tt.changes, changes); w.Code != http.StatusOK || d != "" || strings.Join(sources, " ") != tt.sources {
				t.Errorf("%s %s: status %d, changes %s: %s", segment, tt.body, w.Code, d, w.Body)
			}
		}
	}
}

// TestRemovalConditions checks that a removal with a condition that the gateway
// can't apply is refused, even with the parser flag +fast. Without the
// condition it would remove more records.
func TestRemovalConditions(t *testing.T) {
	for _, query := range []string{
		"account=lab&user=", "account=lab&user=%20", "account=lab&user=,", "account=lab&partition=", "account=lab&cluster=", "account=lab&id=",
		"account=lab&qos=", "account=lab&default_qos=", "account=lab&parent_account=", "account=&user=bob", "account=lab&usr=bob", "account=lab&User=bob",
		"account=lab&id=many", "account=lab&cluster=a/b", "account=lab&user=a&user=%00", "account=lab&Filter%20to%20only%20defaults=maybe",
	} {
		for _, path := range []string{"/slurmdb/v0.0.45/association/?", "/slurmdb/v0.0.45/associations/?", "/scheddb/v0.0.45/associations/?"} {
			for _, flags := range []feature.Flags{0, feature.Fast} {
				f := demo()
				cfg := config(f)
				cfg.Parsers = []feature.Parser{{Version: 45, Flags: flags}}
				w := serve(t, cfg, request(http.MethodDelete, path+query, ""))
				if w.Code != http.StatusUnprocessableEntity || len(f.recorded.changes) != 0 {
					t.Errorf("%s%s, flags %v: status %d, changes %v: %s", path, query, flags, w.Code, f.recorded.changes, w.Body)
				}
			}
		}
	}
}

// TestFastLists checks that with +fast a list without a valid element counts as
// absent. An empty list would remove what the record has.
func TestFastLists(t *testing.T) {
	for _, tt := range []struct{ path, body string }{
		{"qos", `{"qos": [{"name": "fast", "preempt": {"list": [{}]}, "limits": {"max": {"tres": {"minutes": {"total": [5]}}}}}]}`},
		{"associations", `{"associations": [{"account": "lab", "cluster": "demo", "user": "alice", "partition": "debug", "qos": [{}], "max": {"tres": {"total": [5]}}}]}`},
		{"accounts", `{"accounts": [{"name": "lab", "description": "the lab", "organization": "uni", "coordinators": [5]}]}`},
	} {
		f := demo()
		cfg := config(f)
		cfg.Parsers = []feature.Parser{{Version: 45, Flags: feature.Fast}}
		w := serve(t, cfg, request(http.MethodPost, "/scheddb/v0.0.45/"+tt.path, tt.body))
		if len(f.recorded.changes) != 0 {
			t.Errorf("%s: status %d, changes %+v", tt.body, w.Code, f.recorded.changes)
		}
	}
}

// TestBlockedRemoval checks that the error lists the records that prevent a
// removal. The gateway must not modify the list that the daemon returned.
func TestBlockedRemoval(t *testing.T) {
	blocking := []string{"JobID = 7  C =  demo", "JobID = 8"}
	f := demo()
	f.recorded.refuse = func(any) ([]string, error) { return blocking, errs.New(errs.Conflict, "jobs are running") }
	w := serve(t, config(f), request(http.MethodDelete, "/slurmdb/v0.0.45/account/lab", ""))
	body := envelope(t, w.Body.Bytes())
	want := "account lab: jobs are running: JobID = 7 C = demo; JobID = 8; nothing was removed"
	if w.Code != http.StatusConflict || len(body.Errors) != 1 || body.Errors[0].Description != want {
		t.Errorf("status %d, %+v, want %q", w.Code, body.Errors, want)
	}
	if d := cmp.Diff([]string{"JobID = 7  C =  demo", "JobID = 8"}, blocking); d != "" {
		t.Errorf("the list was changed (-want, +got):\n%s", d)
	}
}

// TestUnchangedRecords checks the warning about a record that was not changed.
// It may claim that the record already has the body's values only if the
// gateway has compared them.
func TestUnchangedRecords(t *testing.T) {
	for _, tt := range []struct{ path, body, want string }{
		{"clusters", `{"clusters": [{"name": "new"}, {"name": "demo", "flags": ["EXTERNAL"]}]}`, "#/clusters/1: cluster demo exists already and was not changed"},
		{"config", `{"clusters": [{"name": "demo"}]}`, "#/clusters/0: cluster demo exists already and was not changed"},
		{"wckeys", `{"wckeys": [{"name": "k", "cluster": "demo", "user": "alice"}]}`, "#/wckeys/0: workload key k/demo/alice exists already and was not changed"},
		{"users", `{"users": [{"name": "bob", "administrator_level": ["None"]}]}`, "#/users/0: user bob was not changed: the request has no other value for it"},
	} {
		w := serve(t, config(demo()), request(http.MethodPost, "/slurmdb/v0.0.45/"+tt.path, tt.body))
		body := envelope(t, w.Body.Bytes())
		if w.Code != http.StatusOK || len(body.Warnings) != 1 || body.Warnings[0].Source+": "+body.Warnings[0].Description != tt.want {
			t.Errorf("%s: status %d, %+v, want %q", tt.path, w.Code, body.Warnings, tt.want)
		}
	}
}

// TestNamesInOneText checks that a text with commas names several records, as
// in slurmrestd, and that no record gets a name with a comma.
func TestNamesInOneText(t *testing.T) {
	for _, tt := range []struct {
		path, body string
		want       model.AssocSet // nil for an error
	}{
		{"users_association", `{"association_condition": {"users": "v,w", "accounts": "lab", "partitions": "debug,fake"}, "user": {}}`,
			model.AssocSet{Accounts: []string{"lab"}, Users: []string{"v", "w"}, Partitions: []string{"debug", "fake"}}},
		{"accounts_association", `{"association_condition": {"accounts": "physics, optics", "clusters": "demo"}}`,
			model.AssocSet{Accounts: []string{"physics", "optics"}, Clusters: []string{"demo"}}},
		{"users_association", `{"association_condition": {"users": ["v,w"], "accounts": ["lab"]}, "user": {}}`, model.AssocSet{}},
		{"accounts_association", `{"association_condition": {"accounts": ["physics,optics"]}}`, model.AssocSet{}},
		{"accounts_association", `{"association_condition": {"accounts": ","}}`, model.AssocSet{}},
		{"users_association", `{"association_condition": {"users": "v", "accounts": "lab", "partitions": ""}, "user": {}}`, model.AssocSet{}},
		{"users_association", `{"association_condition": {"users": "v", "accounts": "lab", "partitions": ","}, "user": {}}`, model.AssocSet{}},
	} {
		f := demo()
		w := serve(t, config(f), request(http.MethodPost, "/slurmdb/v0.0.45/"+tt.path, tt.body))
		var got model.AssocSet
		for _, change := range f.recorded.changes {
			switch c := change.(type) {
			case model.AddUsersWithAssocs:
				got = c.AssocSet
			case model.AddAccountsWithAssocs:
				got = c.AssocSet
			}
		}
		got.Assoc = model.Association{}
		if d := cmp.Diff(tt.want, got); d != "" || (w.Code == http.StatusOK) != (len(f.recorded.changes) == 1) {
			t.Errorf("%s: status %d, %s: %s", tt.body, w.Code, d, w.Body)
		}
	}
}

// TestNothingToChange checks that the answer says so if the daemon changes none of the
// records that a request has new values for: it may have removed them meanwhile. The
// warning about requests without new values would be wrong.
func TestNothingToChange(t *testing.T) {
	for list, record := range map[string]string{
		"associations": `{"account": "lab", "cluster": "demo", "user": "alice", "partition": "debug", "shares_raw": 7}`,
		"qos":          `{"name": "fast", "limits": {"factor": 2}}`,
		"users":        `{"name": "bob", "administrator_level": ["Operator"]}`,
	} {
		f, log := demo(), new(recorder)
		f.recorded.refuse = func(any) ([]string, error) { return nil, nil }
		cfg := config(f)
		cfg.Worker = log
		w := serve(t, cfg, request(http.MethodPost, "/slurmdb/v0.0.45/"+list+"/", `{"`+list+`": [`+record+`]}`))
		if want := "the accounting daemon found nothing to change"; w.Code != http.StatusOK || strings.Count(w.Body.String(), want) != 1 || len(f.recorded.changes) != 1 ||
			strings.Contains(w.Body.String(), "has no other value") {
			t.Errorf("%s: status %d, changes %v: %s", list, w.Code, f.recorded.changes, w.Body)
		}
		if len(log.results) != 1 || log.results[0].Objects != "" {
			t.Errorf("%s: the audit log has changed objects: %+v", list, log.results)
		}
	}
}
