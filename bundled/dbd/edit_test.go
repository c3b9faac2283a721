package dbd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"schedrestd/bundled/daemon"
	"schedrestd/bundled/dbd/catalog"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/internal/semaphore"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

var ctx = context.Background()

// add returns a request to add an account.
func add(account string) model.Add[model.Account] {
	return model.Add[model.Account]{Records: []model.Account{{Name: account, Description: "d", Organization: "o"}}}
}

// change makes changes in one transaction.
func change(c *client.Accounting, cred model.Credential, changes ...any) error {
	return c.Edit(ctx, cred, func(e model.Editor) error {
		for _, ch := range changes {
			if _, err := e.Change(ch); err != nil {
				return err
			}
		}
		return nil
	})
}

// accounts returns the names of all accounts that a client sees.
func accounts(t *testing.T, list func(model.Listing) error) (names []string) {
	t.Helper()
	err := list(model.List[model.Account](model.AccountFilter{}, func(a *model.Account) error { names = append(names, a.Name); return nil }))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

var rootCred = model.Credential{Token: "0"}

// TestTransactions checks that changes are visible immediately on the
// connection that made them, and on other connections only after the commit. If
// a change fails, no client sees any change of the transaction.
func TestTransactions(t *testing.T) {
	path := storeFile(t)
	d := New(open(t, path), daemon.Privacy{Super: onlyRoot}, quiet)
	connect := serveTokens(t, d)
	c := connect()
	committed := func() []string {
		return accounts(t, func(l model.Listing) error { return connect().List(ctx, rootCred, l) })
	}
	err := c.Edit(ctx, rootCred, func(e model.Editor) error {
		if _, err := e.Change(add("lab")); err != nil {
			return err
		}
		if got := accounts(t, e.List); !slices.Equal(got, []string{"lab", "root"}) {
			t.Errorf("the transaction sees %v", got)
		}
		if got := committed(); !slices.Equal(got, []string{"root"}) {
			t.Errorf("others see %v", got)
		}
		return nil
	})
	if got := committed(); err != nil || !slices.Equal(got, []string{"lab", "root"}) {
		t.Errorf("after the commit: %v, %v", got, err)
	}
	err = change(c, rootCred, add("bio"), add("lab"))
	if got := committed(); errs.KindOf(err) != errs.Conflict || !slices.Equal(got, []string{"lab", "root"}) {
		t.Errorf("after a failure: %v, %v", got, err)
	}
	if err := change(c, rootCred, add("bio")); err != nil {
		t.Errorf("the next transaction: %v", err)
	}
}

// TestRecordsSurvive checks that the committed records keep all of their fields
// when the daemon is restarted. It also checks that a database of version 2
// keeps its jobs.
func TestRecordsSurvive(t *testing.T) {
	path := storeFile(t)
	s := open(t, path)
	if err := s.Record(ctx, "c1", []model.Job{job(1, 1, model.JobRunning)}); err != nil {
		t.Fatal(err)
	}
	b := s.Catalog().Clone()
	for _, err := range []error{
		b.AddClusters([]model.Cluster{{Name: "c2", Classification: 2}}),
		b.AddAccounts([]model.Account{{Name: "lab", Description: "d", Organization: "o"}}),
		b.AddUsers([]model.User{{Name: "ann", AdminLevel: 2}}),
		b.AddCoordinators([]string{"lab"}, []string{"ann"}),
		b.AddQOS([]model.QOS{{Name: "q", GraceTime: 5, UsageFactor: 0.5, PreemptNames: []string{"1"}, MaxTRESPJ: "1=2"}}),
		b.AddAssociations([]model.Association{{Account: "lab", Cluster: "c2", MaxJobs: model.Some[uint32](3),
			QOSIDs: []string{"1", "2"}, GrpTRES: "1=4", Comment: "c"}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Replace(ctx, b); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, path)
	want := b.Clone()
	if err := want.AddClusters([]model.Cluster{{Name: "c1"}}); err != nil { // the cluster of the recorded job
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, s.Catalog(), cmp.Comparer(func(a, b []string) bool { return slices.Equal(a, b) }), cmpopts.IgnoreUnexported(catalog.Catalog{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	next := s.Catalog().Clone()
	if names, err := next.RemoveAccounts(&model.AccountFilter{Assoc: model.AssocFilter{Accounts: []string{"lab"}}}); err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	if err := s.Replace(ctx, next); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if s = open(t, path); s.Catalog().Accounts["lab"] != nil || s.Catalog().LastAssoc != next.LastAssoc {
		t.Error("a removed account exists again, or its number is used again")
	}
	for _, statement := range []string{"DROP TABLE record", dropRun, "PRAGMA user_version = 2"} {
		if _, err := s.db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	s = open(t, path)
	if s.Catalog().Clusters["c1"] == nil || s.Catalog().QOS[1] == nil || len(jobs(t, s)) != 1 {
		t.Errorf("of version 2: %+v", s.Catalog())
	}
}

// none is the level of an ordinary user.
const none = catalog.Operator - 1

// TestRights checks which changes each user may make.
func TestRights(t *testing.T) {
	s := open(t, storeFile(t))
	b := s.Catalog().Clone()
	users := []model.User{{Name: "1000"}, {Name: "1001", AdminLevel: catalog.Operator},
		{Name: "1002", AdminLevel: catalog.Administrator}, {Name: "ann"}}
	for _, err := range []error{
		b.AddClusters([]model.Cluster{{Name: "c1"}}),
		b.AddUsers(users),
		b.AddAccounts([]model.Account{{Name: "a1"}, {Name: "a2"}}),
		b.AddAssociations([]model.Association{{Account: "a1", Cluster: "c1"}, {Account: "a2", Cluster: "c1"},
			{Account: "a1", Cluster: "c1", User: "1000"}, {Account: "a2", Cluster: "c1", User: "1000"},
			{Account: "a1", Cluster: "c1", User: "ann"}, {Account: "a2", Cluster: "c1", User: "ann"},
			{Account: "a1", Cluster: "c1", User: "1002"}, {Account: "a2", Cluster: "c1", User: "1002"}}),
		s.Replace(ctx, b),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	connect := serveTokens(t, New(s, daemon.Privacy{Super: onlyRoot}, quiet))
	named := func(names ...string) model.UserFilter {
		return model.UserFilter{Assoc: model.AssocFilter{Users: names}}
	}
	modify := func(name string, set func(*model.User)) any {
		u := model.BlankUser()
		set(&u)
		return model.Modify[model.User]{Filter: named(name), Record: u}
	}
	ordinary, qos := model.BlankUser(), model.BlankQOS()
	ordinary.Name, qos.Name = "new", "q"
	operator := ordinary
	operator.AdminLevel = catalog.Operator
	setOf := func(level uint16, users ...string) any {
		u := model.BlankUser()
		u.AdminLevel = level
		set := model.AssocSet{Users: users, Accounts: []string{"a1"}, Assoc: model.BlankAssociation()}
		return model.AddUsersWithAssocs{AssocSet: set, User: u}
	}
	for _, tt := range []struct {
		name    string
		change  any
		allowed []string // tokens of the users who may make the change
	}{
		{"account", add("new"), []string{"0", "1001", "1002"}},
		{"user", model.Add[model.User]{Records: []model.User{ordinary}}, []string{"0", "1001", "1002"}},
		{"user with a level", model.Add[model.User]{Records: []model.User{operator}}, []string{"0", "1002"}},
		{"level", modify("ann", func(u *model.User) { u.AdminLevel = catalog.Administrator }), []string{"0", "1002"}},
		{"own level", modify("1001", func(u *model.User) { u.AdminLevel = catalog.Administrator }), []string{"0", "1002"}},
		{"QOS", model.Add[model.QOS]{Records: []model.QOS{qos}}, []string{"0", "1002"}},
		{"cluster", model.Add[model.Cluster]{Records: []model.Cluster{{Name: "c9"}}}, []string{"0", "1002"}},
		{"removal", model.Remove[model.User]{Filter: named("ann")}, []string{"0", "1001", "1002"}},
		{"own default account", modify("1000", func(u *model.User) { u.DefaultAccount = "a2" }), []string{"0", "1000", "1001", "1002"}},
		{"default account of another", modify("ann", func(u *model.User) { u.DefaultAccount = "a2" }), []string{"0", "1001", "1002"}},
		{"own name", modify("1000", func(u *model.User) { u.Name = "root2" }), []string{"0", "1002"}},
		{"name of an Operator", modify("1001", func(u *model.User) { u.Name = "new" }), []string{"0", "1002"}},
		{"name of an Administrator", modify("1002", func(u *model.User) { u.Name = "new" }), []string{"0", "1002"}},
		{"demotion of an Administrator", modify("1002", func(u *model.User) { u.AdminLevel = none }), []string{"0", "1002"}},
		{"demotion of an Operator", modify("1001", func(u *model.User) { u.AdminLevel = none }), []string{"0", "1002"}},
		{"removal of an Administrator", model.Remove[model.User]{Filter: named("1002")}, []string{"0", "1002"}},
		{"removal of an Operator", model.Remove[model.User]{Filter: named("ann", "1001")}, []string{"0", "1002"}},
		{"default account of an Administrator", modify("1002", func(u *model.User) { u.DefaultAccount = "a2" }), []string{"0", "1001", "1002"}},
		{"users of an account", setOf(none, "new", "1002"), []string{"0", "1001", "1002"}},
		{"Administrator of an account", setOf(catalog.Administrator, "new"), []string{"0", "1002"}},
	} {
		for _, token := range []string{"0", "1000", "1001", "1002", "1003"} {
			errUndo := errors.New("undone")
			err := connect().Edit(ctx, model.Credential{Token: token}, func(e model.Editor) error {
				if _, err := e.Change(tt.change); err != nil {
					return err
				}
				return errUndo
			})
			if want := slices.Contains(tt.allowed, token); want && err != errUndo || !want && (errs.KindOf(err) != errs.Denied) {
				t.Errorf("%s by %s: %v", tt.name, token, err)
			}
		}
	}
}

// TestOperatorTakesNoLevel checks that an Operator can't become an
// Administrator by giving the Operator's own name to the record of an
// Administrator. In the same transaction, the Operator first renames or removes
// the Operator's own record.
func TestOperatorTakesNoLevel(t *testing.T) {
	s := open(t, storeFile(t))
	b := s.Catalog().Clone()
	users := []model.User{{Name: "1001", AdminLevel: catalog.Operator}, {Name: "1002", AdminLevel: catalog.Administrator}}
	if err := errors.Join(b.AddUsers(users), s.Replace(ctx, b)); err != nil {
		t.Fatal(err)
	}
	c, cred := serveTokens(t, New(s, daemon.Privacy{Super: onlyRoot}, quiet))(), model.Credential{Token: "1001"}
	rename := func(from, to string) any {
		u := model.BlankUser()
		u.Name = to
		return model.Modify[model.User]{Filter: model.UserFilter{Assoc: model.AssocFilter{Users: []string{from}}}, Record: u}
	}
	remove := model.Remove[model.User]{Filter: model.UserFilter{Assoc: model.AssocFilter{Users: []string{"1001"}}}}
	for _, changes := range [][]any{
		{rename("1001", "away"), rename("1002", "1001")},
		{remove, rename("1002", "1001")},
	} {
		if err := change(c, cred, changes...); errs.KindOf(err) != errs.Denied {
			t.Errorf("%+v: %v", changes, err)
		}
	}
	if got := s.Catalog().Users["1001"]; got == nil || got.AdminLevel != catalog.Operator {
		t.Errorf("the Operator's record: %+v", got)
	}
}

// TestWhatUsersSee checks which records of other users an ordinary user sees.
func TestWhatUsersSee(t *testing.T) {
	s := open(t, storeFile(t))
	b := s.Catalog().Clone()
	for _, err := range []error{
		b.AddClusters([]model.Cluster{{Name: "c1"}}), b.AddUsers([]model.User{{Name: "1000"}, {Name: "ann"}}),
		b.AddAccounts([]model.Account{{Name: "a1"}, {Name: "a2"}}),
		b.AddAssociations([]model.Association{{Account: "a1", Cluster: "c1"}, {Account: "a2", Cluster: "c1"},
			{Account: "a1", Cluster: "c1", User: "1000"}, {Account: "a1", Cluster: "c1", User: "ann"}}),
		b.AddCoordinators([]string{"a1"}, []string{"ann"}), s.Replace(ctx, b),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name                    string
		hidden                  conf.PrivateData
		users, accounts, assocs int // number of visible records
	}{
		{"without the key", 0, 1, 3, 4}, // no associations of other users
		{"users", conf.PrivateNone | conf.PrivateUsers, 1, 3, 4},
		{"accounts", conf.PrivateNone | conf.PrivateAccounts, 3, 1, 3},
		{"none", conf.PrivateNone, 3, 3, 6},
	} {
		c := serveTokens(t, New(s, daemon.Privacy{Hidden: tt.hidden, Super: onlyRoot}, quiet))()
		cred, users, assocs, within := model.Credential{Token: "1000"}, 0, 0, 0
		err := errors.Join(
			client.Records(ctx, c, cred, model.UserFilter{}, func(*model.User) error { users++; return nil }),
			client.Records(ctx, c, cred, model.AssocFilter{}, func(*model.Association) error { assocs++; return nil }),
			client.Records(ctx, c, cred,
				model.AccountFilter{Flags: model.AccountWithAssocs | model.AccountWithCoordinators},
				func(a *model.Account) error {
					within += len(a.Associations)
					if tt.users == 1 && len(a.Coordinators) > 0 {
						t.Errorf("%s: coordinators %+v", tt.name, a.Coordinators)
					}
					return nil
				}))
		got := len(accounts(t, func(l model.Listing) error { return c.List(ctx, cred, l) }))
		if err != nil || users != tt.users || got != tt.accounts || assocs != tt.assocs || within != tt.assocs {
			t.Errorf("%s: %d users, %d accounts, %d associations, %d in accounts, %v", tt.name, users, got, assocs, within, err)
		}
	}
}

// TestOneTransactionAtATime checks that a change waits until another client's
// transaction ends. It must not wait for a client that has stopped sending or
// has disconnected.
func TestOneTransactionAtATime(t *testing.T) {
	d := New(open(t, storeFile(t)), daemon.Privacy{Super: onlyRoot}, quiet)
	connect := serveTokens(t, d)
	started, proceed, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	first := func() {
		ended <- connect().Edit(ctx, rootCred, func(e model.Editor) error {
			_, err := e.Change(add("first"))
			started <- struct{}{}
			<-proceed
			return err
		})
	}
	go first()
	<-started
	d.maxWait = time.Millisecond
	if err := change(connect(), rootCred, add("second")); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("a concurrent change: %v", err)
	}
	d.maxWait = time.Hour
	second := make(chan error)
	go func() { second <- change(connect(), rootCred, add("second")) }()
	close(proceed)
	if err := errors.Join(<-ended, <-second); err != nil {
		t.Error(err)
	}
	// When a client stops sending, its transaction is rolled back as soon as
	// another client wants to begin a transaction.
	proceed = make(chan struct{})
	go func() {
		ended <- connect().Edit(ctx, rootCred, func(e model.Editor) error {
			_, err := e.Change(add("third"))
			started <- struct{}{}
			<-proceed
			return err
		})
	}()
	<-started
	d.editSlot.maxIdle = time.Nanosecond
	if err := change(connect(), rootCred, add("fourth")); err != nil {
		t.Error(err)
	}
	close(proceed)
	if err := <-ended; errs.KindOf(err) != errs.Conflict || !strings.Contains(err.Error(), "more than 1ns") {
		t.Errorf("the client that stopped sending commits: %v", err)
	}
	want := []string{"first", "fourth", "root", "second"}
	if got := accounts(t, func(l model.Listing) error { return connect().List(ctx, rootCred, l) }); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// TestUsersTakeTurnsToChange checks that a user with many sessions that wait for
// their transactions delays another user by at most three transactions.
func TestUsersTakeTurnsToChange(t *testing.T) {
	d := New(open(t, storeFile(t)), daemon.Privacy{Super: onlyRoot}, quiet)
	synctest.Test(t, func(t *testing.T) {
		d.turns = semaphore.New[uint32](limit.Transactions)
		var order []uint32
		var clients sync.WaitGroup
		wait := func(uid uint32) {
			clients.Go(func() {
				s := new(server.Session)
				if _, err := d.acquireEdit(t.Context(), s, uid); err != nil {
					t.Error(err)
					return
				}
				order = append(order, uid)
				time.Sleep(time.Second)
				d.closeEdit(s)
			})
			synctest.Wait()
		}
		for range 6 {
			wait(1000)
		}
		wait(1001)
		clients.Wait()
		if got := fmt.Sprint(order); got != "[1000 1000 1000 1001 1000 1000 1000]" {
			t.Errorf("order %s", got)
		}
	})
}

// TestTicket checks that a client with the controller's ticket can send only
// the messages that the controller sends, even though the ticket belongs to a
// user who may do everything.
func TestTicket(t *testing.T) {
	d := New(open(t, storeFile(t)), daemon.Privacy{Super: onlyRoot}, quiet)
	permitted := map[message.Type]bool{message.AccountingGetStats: true, message.AccountingRecordJobs: true, message.AccountingRecordRuns: true, message.AccountingFini: true}
	for kind, handler := range d.Handlers() {
		if permitted[kind] {
			continue
		}
		_, _, err := handler(ctx, &server.Request{Type: kind, Identity: server.Identity{Ticket: true}})
		if errs.KindOf(err) != errs.Denied || !strings.Contains(fmt.Sprint(err), "ticket") {
			t.Errorf("%v: %v", kind, err)
		}
	}
}

// TestLostConnection checks that a transaction is rolled back when its
// connection is closed, and that no other client waits for it.
func TestLostConnection(t *testing.T) {
	d := New(open(t, storeFile(t)), daemon.Privacy{Super: onlySelf}, quiet)
	s := &server.Server{Persistent: d.Handlers(), SpoolDir: t.TempDir(), Log: quiet, Super: onlySelf}
	ln, err := net.Listen("unix", filepath.Join(sockettest.Dir(t), "s"))
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	var nc net.Conn
	c := client.NewAccounting(client.Config{Cluster: "c1", Accounting: []client.Address{{Name: "dbd", Network: "unix", Address: ln.Addr().String()}},
		Dial: func(ctx context.Context, a client.Address) (net.Conn, error) {
			nc, err = new(net.Dialer).DialContext(ctx, a.Network, a.Address)
			return nc, err
		}})
	err = c.Edit(ctx, model.Credential{}, func(e model.Editor) error {
		_, err := e.Change(add("lost"))
		nc.Close()
		return err
	})
	if err == nil {
		t.Error("a commit over a closed connection")
	}
	next := client.NewAccounting(client.Config{Cluster: "c1",
		Accounting: []client.Address{{Name: "dbd", Network: "unix", Address: ln.Addr().String()}}})
	if err := change(next, model.Credential{}, add("next")); err != nil {
		t.Error(err)
	}
	if got := accounts(t, func(l model.Listing) error { return next.List(ctx, model.Credential{}, l) }); !slices.Equal(got, []string{"next", "root"}) {
		t.Errorf("%v", got)
	}
}

// TestEveryChangeAtEveryVersion checks that each kind of change works in each
// protocol version.
func TestEveryChangeAtEveryVersion(t *testing.T) {
	for _, v := range []codec.Version{codec.V2205, codec.V2311, codec.V2411, codec.Newest} {
		d := New(open(t, storeFile(t)), daemon.Privacy{Super: onlySelf}, quiet)
		s := &server.Server{Persistent: d.Handlers(), SpoolDir: t.TempDir(), Log: quiet, Super: onlySelf, Oldest: v, Newest: v}
		ln, err := net.Listen("unix", filepath.Join(sockettest.Dir(t), "s"))
		if err != nil {
			t.Fatal(err)
		}
		go s.Serve(ln)
		c := client.NewAccounting(client.Config{Cluster: "c1",
			Accounting: []client.Address{{Name: "dbd", Network: "unix", Address: ln.Addr().String()}}})
		user, qos, assoc, assocOf := model.BlankUser(), model.BlankQOS(), model.BlankAssociation(), model.BlankAssociation()
		user.Name, qos.Name = "ann", "high"
		assoc.Account, assoc.Cluster, assoc.MaxJobs = "lab", "c1", model.Some[uint32](4)
		assocOf.Account, assocOf.Cluster, assocOf.User = "lab", "c1", "ann"
		newAssoc, newQOS, newUser := model.BlankAssociation(), model.BlankQOS(), model.BlankUser()
		newAssoc.MaxJobs, newQOS.Priority, newUser.AdminLevel = model.Some[uint32](6), model.Some[uint32](9), catalog.Operator
		filter := model.AssocFilter{Accounts: []string{"lab"}, Users: []string{"ann"}}
		changes := []any{
			model.Add[model.Cluster]{Records: []model.Cluster{{Name: "c1", RootAssoc: model.BlankAssociation()}}},
			add("lab"), model.Add[model.User]{Records: []model.User{user}}, model.Add[model.QOS]{Records: []model.QOS{qos}},
			model.Add[model.Association]{Records: []model.Association{assoc, assocOf}},
			model.AddCoordinators{Accounts: []string{"lab"}, Users: []string{"ann"}},
			model.Modify[model.Account]{Filter: model.AccountFilter{Assoc: model.AssocFilter{Accounts: []string{"lab"}}},
				Record: model.Account{Description: "new"}},
			model.Modify[model.Association]{Filter: filter, Record: newAssoc},
			model.Modify[model.QOS]{Filter: model.QOSFilter{Names: []string{"high"}}, Record: newQOS},
			model.Modify[model.User]{Filter: model.UserFilter{Assoc: model.AssocFilter{Users: []string{"ann"}}}, Record: newUser},
		}
		if v >= codec.V2311 {
			changes = append(changes,
				model.AddAccountsWithAssocs{AssocSet: model.AssocSet{Accounts: []string{"bio"}, Assoc: model.BlankAssociation()}},
				model.AddUsersWithAssocs{AssocSet: model.AssocSet{Users: []string{"bob"}, Accounts: []string{"bio"},
					Assoc: model.BlankAssociation()}, User: model.BlankUser()})
		}
		if err := change(c, model.Credential{}, changes...); err != nil {
			t.Fatalf("%v: %v", v, err)
		}
		b := d.store.Catalog()
		got := b.ListAssociations(&filter)
		if len(got) != 1 || got[0].MaxJobs.Number != 6 || b.Accounts["lab"].Description != "new" || b.Users["ann"].AdminLevel != catalog.Operator ||
			b.QOS[2].Priority.Number != 9 || len(b.Accounts["lab"].Coordinators) != 1 || (b.Users["bob"] != nil) != (v >= codec.V2311) {
			t.Errorf("%v: %+v %+v", v, got, b)
		}
		if err := change(c, model.Credential{}, model.RemoveCoordinators{Accounts: []string{"lab"}, Users: []string{"ann"}},
			model.Remove[model.Association]{Filter: filter},
			model.Remove[model.User]{Filter: model.UserFilter{Assoc: model.AssocFilter{Users: []string{"ann"}}}},
			model.Remove[model.Account]{Filter: model.AccountFilter{Assoc: model.AssocFilter{Accounts: []string{"lab"}}}},
			model.Remove[model.QOS]{Filter: model.QOSFilter{Names: []string{"high"}}},
			model.Remove[model.Cluster]{Filter: model.ClusterFilter{Names: []string{"c1"}, Flags: model.Opt[uint32]{}}}); err != nil {
			t.Fatalf("%v: %v", v, err)
		}
		if b := d.store.Catalog(); b.Accounts["lab"] != nil || b.Users["ann"] != nil || len(b.QOS) != 1 || len(b.Associations) != 0 {
			t.Errorf("%v: left %+v", v, b)
		}
		err = change(c, model.Credential{}, model.Add[model.WCKey]{Records: []model.WCKey{{Name: "w", Cluster: "c1", User: "ann"}}})
		if e, _ := errors.AsType[*errs.Error](err); e == nil || e.Number != fault.NotSupported {
			t.Errorf("%v: workload keys: %v", v, err)
		}
		for _, removal := range []any{
			model.Remove[model.Association]{Filter: model.AssocFilter{}},
			model.Remove[model.Account]{Filter: model.AccountFilter{}},
			model.Remove[model.User]{Filter: model.UserFilter{}},
			model.Remove[model.QOS]{Filter: model.QOSFilter{}},
			model.Remove[model.Cluster]{Filter: model.ClusterFilter{}},
		} {
			if err := change(c, model.Credential{}, removal); errs.KindOf(err) != errs.Invalid {
				t.Errorf("%v: %T without a condition: %v", v, removal, err)
			}
		}
	}
}
