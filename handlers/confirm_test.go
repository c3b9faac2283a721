package handlers

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

// A careless is an accounting daemon that loses changes as slurmdbd does. Its
// Edit starts a transaction again as client.Accounting does.
type careless struct {
	accounts
	forgets int  // number of transactions whose first change is lost after the second one
	drops   int  // number of commits that are acknowledged, but not made
	other   bool // before the first change, another client adds the same account
	removes bool // before the second change, another client removes the cluster other
	keeps   int  // number of removals that are acknowledged, but not made
	edits   int
	dropped func() // called after a commit that is not made
}

// List requests records, unless the request has been cancelled.
func (d *careless) List(ctx context.Context, cred model.Credential, l model.Listing) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return d.accounts.List(ctx, cred, l)
}

func (d *careless) Edit(ctx context.Context, cred model.Credential, f func(model.Editor) error) error {
	for d.edits = 1; d.edits <= 10; d.edits++ {
		before := d.recorded.lists
		err := d.accounts.Edit(ctx, cred, func(e model.Editor) error { return f(&carelessEditor{editor: e.(editor), d: d}) })
		if errors.Is(err, model.ErrRestart) {
			continue
		}
		if d.drops > 0 {
			d.drops--
			d.recorded.lists = before
			if d.dropped != nil {
				d.dropped()
			}
		}
		return err
	}
	return errs.New(errs.Unavailable, "nothing was changed")
}

type carelessEditor struct {
	editor
	d     *careless
	calls int
}

func (e *carelessEditor) Change(change any) ([]string, error) {
	e.calls++
	switch {
	case e.calls == 1 && e.d.other:
		e.d.other = false
		e.recorded.saved.accounts = append(e.recorded.saved.accounts[:1:1], model.Account{Name: "a", Description: "another client's", Organization: "o"})
	case e.calls == 2 && e.d.forgets > 0:
		e.d.forgets--
		e.recorded.lists = *e.recorded.saved
	}
	if e.calls == 2 && e.d.removes {
		e.recorded.saved.clusters = slices.DeleteFunc(slices.Clone(e.recorded.saved.clusters), func(c model.Cluster) bool { return c.Name == "other" })
	}
	if isRemoval(change) && e.d.keeps > 0 {
		e.d.keeps--
		return []string{"it"}, nil
	}
	names, err := e.editor.Change(change)
	if m, ok := change.(model.Modify[model.Account]); ok && err == nil {
		list := append([]model.Account(nil), e.recorded.accounts...)
		for i := range list {
			if list[i].Name == m.Filter.(model.AccountFilter).Assoc.Accounts[0] && m.Record.Organization != "" {
				list[i].Organization = m.Record.Organization
			}
		}
		e.recorded.accounts = list
	}
	return names, err
}

// TestLostChanges checks that changes that the daemon acknowledged, but lost,
// are made again, and that another client's changes stay.
func TestLostChanges(t *testing.T) {
	const two = `{"accounts": [{"name": "a", "description": "d", "organization": "o"}, {"name": "b", "description": "d", "organization": "o"}]}`
	const one = `{"accounts": [{"name": "a", "description": "", "organization": "p"}]}`
	for _, tt := range []struct {
		name   string
		daemon careless
		body   string
		status int
		kept   string
	}{
		{"nothing is lost", careless{}, two, 200, "a/d/o b/d/o"},
		{"a change is lost", careless{forgets: 1}, two, 200, "a/d/o b/d/o"},
		{"changes are always lost", careless{forgets: 100}, two, 503, ""},
		{"a commit is lost", careless{drops: 1}, two, 200, "a/d/o b/d/o"},
		{"the only change is lost at its commit", careless{drops: 1}, one, 200, "a/a/p"},
		{"commits are always lost", careless{drops: 100}, two, 503, ""},
		{"another client adds the account first", careless{other: true}, `{"accounts": [{"name": "a", "organization": "p", "description": "mine"}]}`, 200, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			cfg := config(f)
			d := tt.daemon
			d.accounts = cfg.Accounting.(accounts)
			cfg.Accounting = &d
			w := serve(t, cfg, request(http.MethodPost, "/scheddb/v0.0.45/accounts/", tt.body))
			if w.Code != tt.status {
				t.Errorf("status %d, want %d: %s", w.Code, tt.status, w.Body)
			}
			if e := envelope(t, w.Body.Bytes()).Errors; tt.status == 503 && (len(e) != 1 || !e[0].Retryable || e[0].Number != 0) {
				t.Errorf("errors %+v, want one that is retryable", e)
			}
			var kept []string
			for _, a := range f.recorded.accounts[1:] {
				kept = append(kept, a.Name+"/"+string(a.Description)+"/"+string(a.Organization))
			}
			if got := strings.Join(kept, " "); tt.kept != "" && got != tt.kept || tt.status != 200 && got != "" {
				t.Errorf("kept %q, want %q", got, tt.kept)
			}
			if tt.daemon.other && d.edits < 2 {
				t.Error("the transaction did not start again")
			}
		})
	}
}

// TestLostCommitOfClientThatLeft checks that a commit is checked, and made again, although
// the client has gone meanwhile: the audit log says what was saved.
func TestLostCommitOfClientThatLeft(t *testing.T) {
	f := demo()
	cfg := config(f)
	ctx, leave := context.WithCancel(t.Context())
	d := &careless{accounts: cfg.Accounting.(accounts), drops: 1, dropped: leave}
	cfg.Accounting = d
	serve(t, cfg, request(http.MethodPost, "/scheddb/v0.0.45/accounts/", `{"accounts": [{"name": "a", "description": "d", "organization": "o"}]}`).WithContext(ctx))
	if !slices.ContainsFunc(f.recorded.accounts, func(a model.Account) bool { return a.Name == "a" }) || d.drops != 0 {
		t.Errorf("the change was not made again: %+v", f.recorded.accounts)
	}
}

// TestLostRemoval checks that a removal that the daemon acknowledged, but did not
// make, is made again.
func TestLostRemoval(t *testing.T) {
	for keeps, want := range map[int]int{0: 200, 1: 200, 100: 503} {
		f := demo()
		cfg := config(f)
		cfg.Accounting = &careless{accounts: cfg.Accounting.(accounts), keeps: keeps}
		w := serve(t, cfg, request(http.MethodDelete, "/scheddb/v0.0.45/account/lab", ""))
		if remains := slices.ContainsFunc(f.recorded.accounts, func(a model.Account) bool { return a.Name == "lab" }); w.Code != want || remains != (want != 200) {
			t.Errorf("kept %d times: status %d, remains %v: %s", keeps, w.Code, remains, w.Body)
		}
	}
}

// TestIsSaved checks when the changes of a transaction are taken for lost at the
// commit: only if what others see is what they saw before.
func TestIsSaved(t *testing.T) {
	type record struct{ Limit, Other int }
	before, change := &record{1, 1}, &record{2, 1}
	own := []bool{true, false}
	for _, tt := range []struct {
		name   string
		effect effect
		now    any // nil for no record
		err    error
		saved  bool
	}{
		{"what was changed", effect{committed: before, change: change, end: change, own: own}, &record{2, 1}, nil, true},
		{"what was", effect{committed: before, change: change, end: change, own: own}, &record{1, 1}, nil, false},
		{"another client's change of another field", effect{committed: before, change: change, end: change, own: own}, &record{1, 5}, nil, false},
		{"another client's change of the field", effect{committed: before, change: change, end: change, own: own}, &record{7, 1}, nil, true},
		{"what was, which a later change has restored", effect{committed: before, change: change, end: before, own: own}, &record{1, 1}, nil, true},
		{"that another client has removed the record", effect{committed: before, change: change, end: change, own: own}, nil, nil, true},
		{"the new record", effect{change: change, end: change}, change, nil, true},
		{"no new record", effect{change: change, end: change}, nil, nil, false},
		{"that the record is gone", effect{committed: before}, nil, nil, true},
		{"the record that was removed", effect{committed: before}, before, nil, false},
		{"that the daemon does not answer", effect{committed: before, change: change, end: change, own: own}, nil, errs.New(errs.Unavailable, "no"), true},
	} {
		tt.effect.view = func(lister) (any, error) { return tt.now, tt.err }
		if saved := (&transaction{effect: &tt.effect}).isSaved(); saved != tt.saved {
			t.Errorf("others see %s: saved %v, want %v", tt.name, saved, tt.saved)
		}
	}
}

// TestRemovedCluster checks that no record is made in a cluster that another
// client removes during the transaction, although the transaction still sees it.
func TestRemovedCluster(t *testing.T) {
	for _, removes := range []bool{false, true} {
		f := demo()
		f.recorded.associations = append(f.recorded.associations, model.Association{Account: "lab", Cluster: "other"})
		cfg := config(f)
		d := careless{accounts: cfg.Accounting.(accounts), removes: removes}
		cfg.Accounting = &d
		w := serve(t, cfg, request(http.MethodPost, "/scheddb/v0.0.45/associations/",
			`{"associations": [{"account": "lab", "cluster": "other", "user": "alice"}, {"account": "lab", "cluster": "other", "user": "bob"}]}`))
		made := slices.ContainsFunc(f.recorded.associations, func(a model.Association) bool { return a.Cluster == "other" && a.User != "" })
		if want := map[bool]int{false: 200, true: 404}[removes]; w.Code != want || made == removes {
			t.Errorf("removed %v: status %d, made %v: %s", removes, w.Code, made, w.Body)
		}
	}
}

// TestWarnsAgain checks that the answer has the warnings about a change that was
// made more than once: because the transaction started again, or because it was
// only checked the first time.
func TestWarnsAgain(t *testing.T) {
	for _, tt := range []struct{ name, path, body, warning string }{
		{"again, of an account", "associations", `{"associations": [{"account": "lab", "cluster": "other", "user": "", "is_default": true}]}`, "only the association of a user can be the default"},
		{"again, of a user", "associations", `{"associations": [{"account": "lab", "cluster": "demo", "user": "bob", "parent_account": "other"}]}`, "is always below that of its account"},
		{"checked before", "config", `{"clusters": [{"name": "new"}], "associations": [{"account": "lab", "cluster": "new", "user": ""}, {"account": "lab", "cluster": "new", "user": "bob", "parent_account": "other"}]}`, "is always below that of its account"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			cfg := config(f)
			d := &careless{accounts: cfg.Accounting.(accounts), drops: 1}
			cfg.Accounting = d
			w := serve(t, cfg, request(http.MethodPost, "/scheddb/v0.0.45/"+tt.path, tt.body))
			if w.Code != 200 || strings.Count(w.Body.String(), tt.warning) != 1 {
				t.Errorf("status %d, want one warning %q: %s", w.Code, tt.warning, w.Body)
			}
			if d.drops != 0 {
				t.Error("no transaction was lost")
			}
		})
	}
}

// TestNewClusters checks that a cluster, which the daemon can't roll back, is
// created last, in a transaction of its own, and that the error says what
// remains.
func TestNewClusters(t *testing.T) {
	long := strings.Repeat("x", 41)
	for _, tt := range []struct {
		name, path, body string
		refuse           string // the change that the daemon refuses
		status           int
		changes          string // those of clusters
		says             string
	}{
		{"a QOS that preempts an unknown one", "config", `{"clusters": [{"name": "new"}], "qos": [{"name": "q", "preempt": {"list": ["nosuch"]}}]}`, "", 422, "", "nothing was changed"},
		{"an association below an account that will not be in the cluster", "config", `{"clusters": [{"name": "new"}], "associations": [{"account": "lab", "cluster": "new", "user": "", "parent_account": "other"}]}`, "", 404, "", "nothing was changed"},
		{"an association of a user whose account is not in the cluster", "config", `{"clusters": [{"name": "new"}], "associations": [{"account": "lab", "cluster": "new", "user": "bob"}]}`, "", 404, "", "nothing was changed"},
		{"an association with an unknown QOS", "config", `{"clusters": [{"name": "new"}], "associations": [{"account": "lab", "cluster": "new", "user": "", "qos": ["nosuch"]}]}`, "", 422, "", "nothing was changed"},
		{"a workload key of an unknown user", "config", `{"clusters": [{"name": "new"}], "wckeys": [{"name": "w", "cluster": "new", "user": "nosuch"}]}`, "", 404, "", "nothing was changed"},
		{"a load of a cluster and its records", "config", `{"clusters": [{"name": "new"}], "associations": [{"account": "lab", "cluster": "new", "user": ""}, {"account": "lab", "cluster": "new", "user": "bob"}]}`, "", 200, "add cluster new", ""},
		{"a long name after a good one", "clusters", `{"clusters": [{"name": "new"}, {"name": "` + long + `"}]}`, "", 422, "", "nothing was changed"},
		{"one name twice", "clusters", `{"clusters": [{"name": "new"}, {"name": "NEW"}]}`, "", 422, "", "nothing was changed"},
		{"the second is refused", "clusters", `{"clusters": [{"name": "new"}, {"name": "newer"}]}`, "add cluster newer", 409, "add cluster new, add cluster newer", "the cluster was not created; new clusters that remain: new"},
		{"the records are refused after the cluster was created", "config", `{"clusters": [{"name": "new"}], "associations": [{"account": "lab", "cluster": "new", "user": ""}]}`, "add association new/lab", 409, "add cluster new", "new clusters that remain: new"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			cfg := config(f)
			cfg.Accounting = refusingClusters{cfg.Accounting.(accounts), tt.refuse}
			log := new(recorder)
			cfg.Worker = log
			w := serve(t, cfg, request(http.MethodPost, "/scheddb/v0.0.45/"+tt.path, tt.body))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) {
				t.Errorf("status %d, want %d and %q: %s", w.Code, tt.status, tt.says, w.Body)
			}
			kept := tt.status == 200 || strings.Contains(tt.says, "new clusters that remain: new")
			if len(log.results) != 1 || strings.Contains(log.results[0].Objects, "new") != kept {
				t.Errorf("audit log: %+v", log.results)
			}
			var changes []string
			for _, c := range f.recorded.changes {
				if text := describeChange(c); strings.HasPrefix(text, "add cluster") {
					changes = append(changes, text)
				}
			}
			if got := strings.Join(changes, ", "); got != tt.changes {
				t.Errorf("changes %q, want %q", got, tt.changes)
			}
		})
	}
}

// refusingClusters is an accounting daemon that refuses one change.
type refusingClusters struct {
	accounts
	refuses string
}

func (d refusingClusters) Edit(ctx context.Context, cred model.Credential, f func(model.Editor) error) error {
	return d.accounts.Edit(ctx, cred, func(e model.Editor) error { return f(refusingEditor{e.(editor), d.refuses}) })
}

type refusingEditor struct {
	editor
	refuses string
}

func (e refusingEditor) Change(change any) ([]string, error) {
	names, err := e.editor.Change(change)
	if describeChange(change) == e.refuses {
		return nil, errs.New(errs.Conflict, "no")
	}
	return names, err
}

// TestCoordinatorRemoves checks that a coordinator gets a true answer to the
// removal of associations: slurmdbd removes none if one of them is of another
// account, and does not say why.
func TestCoordinatorRemoves(t *testing.T) {
	for _, tt := range []struct {
		name        string
		client      model.User
		query       string
		status      int
		says        string
		changesMade int
	}{
		{"of the own account", model.User{AdminLevel: adminNone, Coordinates: []model.Coordinator{{Name: "LAB"}}}, "account=lab", 200, "", 1},
		{"of another account", model.User{AdminLevel: adminNone, Coordinates: []model.Coordinator{{Name: "other"}}}, "account=lab", 403, "you do not coordinate account lab: nothing was removed", 0},
		{"of none", model.User{AdminLevel: adminNone, Coordinates: []model.Coordinator{{Name: "other"}}}, "account=hidden", 404, "there is no such record", 0},
		{"by an operator", model.User{AdminLevel: operator}, "account=lab", 200, "", 1},
		{"by an ordinary user", model.User{AdminLevel: adminNone}, "account=lab", 200, "", 1}, // whom the daemon refuses
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			tt.client.Name = "alice"
			f.recorded.users = []model.User{tt.client}
			w := serve(t, config(f), request(http.MethodDelete, "/scheddb/v0.0.45/associations/?"+tt.query, ""))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) {
				t.Errorf("status %d, want %d and %q: %s", w.Code, tt.status, tt.says, w.Body)
			}
			if got := len(f.recorded.changes); got != tt.changesMade {
				t.Errorf("%d changes, want %d", got, tt.changesMade)
			}
		})
	}
}

// TestCountDenied checks that a view does not list records again that the user
// may not list: slurmdbd would roll the transaction back.
func TestCountDenied(t *testing.T) {
	calls := 0
	v := count(model.WCKeyFilter{})
	for range 2 {
		n, err := v(func(model.Listing) error { calls++; return errs.New(errs.Denied, "no") })
		if err != nil || *n.(*recordCount) != (recordCount{}) {
			t.Errorf("%v, %v", n, err)
		}
	}
	if calls != 1 {
		t.Errorf("%d lists", calls)
	}
}
