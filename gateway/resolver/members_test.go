package resolver

import (
	"errors"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become/nss"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// testMembers has these users: alice (1000, primary group 100), bob (1001, in the
// group's list), carol (1002, a supplementary group), dave (1003, no group), and the
// group students (100).
func testMembers(d *directory) *members {
	m := d.members
	users := map[string]nss.User{"alice": {Name: "alice", UID: 1000, GID: 100}, "bob": {Name: "bob", UID: 1001, GID: 1},
		"carol": {Name: "carol", UID: 1002, GID: 1}, "dave": {Name: "dave", UID: 1003, GID: 1}}
	missing := errs.New(errs.NotFound, "does not exist")
	m.user = func(name string) (nss.User, error) {
		if u, ok := users[name]; ok {
			return u, nil
		}
		return nss.User{}, missing
	}
	m.group = func(name string) (nss.Group, error) {
		if name == "students" {
			return nss.Group{Name: name, GID: 100, Members: []string{"bob"}}, nil
		}
		return nss.Group{}, missing
	}
	m.groups = func(u nss.User) ([]uint32, error) {
		if u.Name == "carol" {
			return []uint32{u.GID, 100}, nil
		}
		return []uint32{u.GID}, nil
	}
	d.accounts.lookup = func(string) (nss.User, error) { return nss.User{}, missing }
	return m
}

// keeperChannel connects a keeper with a resolver, and returns the keeper's end of
// the channel.
func keeperChannel(t *testing.T, parent *ipc.Channel) *ipc.Channel {
	t.Helper()
	c, fd, err := ipc.Pair(ipc.Keeper, ipc.Resolver)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, parent.Send(&ipc.KeeperChannel{}, fd))
	must(t, unix.Close(fd))
	return c
}

// TestMembership checks the answers about members, and that a failure is no answer.
func TestMembership(t *testing.T) {
	d := newDirectory()
	m := testMembers(d)
	broken := errs.New(errs.Unavailable, "no answer")
	c := keeperChannel(t, serve(t, d))
	ask := func(user, group string, groups bool) query.Membership {
		t.Helper()
		must(t, c.Send(&query.AskMember{ID: 5, User: user, Group: group, Groups: groups}))
		return *receive(t, c).(*query.Membership)
	}
	for _, tt := range []struct {
		user, group string
		groups      bool
		want        query.Membership
	}{
		{"alice", "students", false, query.Membership{Available: true, Member: true, UID: 1000, GID: 100}},
		{"bob", "students", false, query.Membership{Available: true, Member: true, UID: 1001, GID: 1}},
		{"carol", "students", false, query.Membership{Available: true, Member: true, UID: 1002, GID: 1}},
		{"dave", "students", false, query.Membership{Available: true, UID: 1003, GID: 1}},
		{"zoe", "students", false, query.Membership{Available: true, UID: ipc.NoID}},
		{"alice", "teachers", false, query.Membership{Available: true, UID: 1000, GID: 100}},
		{"", "students", false, query.Membership{Available: true, UID: ipc.NoID}},
		{"alice", "", false, query.Membership{Available: true, UID: 1000, GID: 100}},
		{"carol", "", true, query.Membership{Available: true, UID: 1002, GID: 1, Groups: []uint32{1, 100}}},
		{"alice", "students", true, query.Membership{Available: true, Member: true, UID: 1000, GID: 100, Groups: []uint32{100}}},
		{"zoe", "", true, query.Membership{Available: true, UID: ipc.NoID}},
	} {
		tt.want.ID = 5
		for range 2 { // the second time from the cache
			if got := ask(tt.user, tt.group, tt.groups); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%q in %q: %+v", tt.user, tt.group, got)
			}
		}
	}
	fail := map[string]func(){
		"users":  func() { m.user = func(string) (nss.User, error) { return nss.User{}, broken } },
		"group":  func() { m.group = func(string) (nss.Group, error) { return nss.Group{}, broken } },
		"groups": func() { m.groups = func(nss.User) ([]uint32, error) { return nil, broken } },
	}
	for what, f := range fail {
		d := newDirectory()
		m = testMembers(d)
		f()
		c = keeperChannel(t, serve(t, d))
		if got := ask("dave", "students", false); got.Available || got.Member {
			t.Errorf("without %s: %+v", what, got)
		}
	}
}

// TestMemberTTL checks for how long an answer is remembered: a user who has left a
// group is soon no member, even if the user database is unavailable then.
func TestMemberTTL(t *testing.T) {
	now := time.Now()
	d := newDirectory()
	d.now = func() time.Time { return now }
	m := testMembers(d)
	i := d.inquirer()
	defer i.stop()
	member := func(user string) (bool, error) {
		found, err := i.member(memberKey{user: user, group: "students"})
		return found.member, err
	}
	if is, err := member("carol"); !is || err != nil {
		t.Fatalf("carol: %v, %v", is, err)
	}
	if is, _ := member("dave"); is {
		t.Fatal("dave is a member")
	}
	m.groups = func(u nss.User) ([]uint32, error) { // carol has left, dave has joined
		if u.Name == "dave" {
			return []uint32{100}, nil
		}
		return nil, nil
	}
	now = now.Add(nonMemberTTL)
	if is, _ := member("dave"); !is {
		t.Error("dave is no member 10 s after joining")
	}
	now = now.Add(memberTTL - nonMemberTTL - 1)
	if is, _ := member("carol"); !is {
		t.Error("the answer is not remembered")
	}
	now = now.Add(1)
	if is, err := member("carol"); is || err != nil {
		t.Errorf("carol is a member 30 s after leaving: %v", err)
	}
	if is, _ := member("dave"); !is {
		t.Error("dave is no member")
	}
	m.groups = func(nss.User) ([]uint32, error) { return nil, errors.New("no answer") }
	now = now.Add(memberTTL)
	if is, err := member("dave"); is || err == nil {
		t.Errorf("a failure: %v, %v", is, err)
	}
}

// TestDirectoryIsDown checks that nobody seems to have left a group because the
// directory service finds none of its users.
func TestDirectoryIsDown(t *testing.T) {
	d := newDirectory()
	testMembers(d)
	i := d.inquirer()
	defer i.stop()
	d.accounts.storeLocked("erin", nss.User{Name: "erin", UID: 1005, Remote: true}, time.Now())
	if _, err := i.member(memberKey{user: "frank", group: "students"}); errs.KindOf(err) != errs.Unavailable {
		t.Errorf("the directory is down: %v", err)
	}
	d.accounts.lookup = func(name string) (nss.User, error) { return nss.User{Name: name, UID: 1005, Remote: true}, nil }
	if found, err := i.member(memberKey{user: "frank", group: "students"}); err != nil || found.uid != ipc.NoID {
		t.Errorf("the directory answers: %+v, %v", found, err)
	}
}

// TestKeeperAsksTooMuch checks that questions that a captured keeper, or one that no
// longer waits, asks at once are answered, and that the resolver serves workers
// meanwhile. A keeper that breaks the protocol loses its channel.
func TestKeeperAsksTooMuch(t *testing.T) {
	d := newDirectory()
	m, release := testMembers(d), make(chan struct{})
	defer close(release)
	var started atomic.Int32
	m.group = func(string) (nss.Group, error) {
		started.Add(1)
		<-release
		return nss.Group{}, nil
	}
	d.user = func(uint32) (string, error) { return "alice", nil }
	parent := serve(t, d)
	c, w := keeperChannel(t, parent), worker(t, parent, 1)
	for i := range uint64(limit.ResolverPending.Share + 1) {
		must(t, c.Send(&query.AskMember{ID: i, User: "alice", Group: "g" + string(rune('a'+i%26))}))
	}
	if got := receive(t, c).(*query.Membership); got.ID != uint64(limit.ResolverPending.Share) || got.Available {
		t.Errorf("one too many: %+v", got)
	}
	must(t, w.Send(&work.Lookup{ID: 7, Number: 1000}))
	if got := receive(t, w).(*work.LookupResult); got.Name != "alice" {
		t.Errorf("a worker: %+v", got)
	}
	if n := started.Load(); n > 2 {
		t.Errorf("%d look-ups for the keeper at once", n)
	}
	must(t, c.WithFD(func(fd int) error { _, err := unix.Write(fd, []byte{42, 0}); return err }))
	for err := error(nil); err == nil; { // some of the questions may still be answered
		_, err = c.Receive()
	}
	must(t, parent.Send(&work.Lookup{ID: 8, Number: 1000}))
	if got := receive(t, parent).(*work.LookupResult); got.ID != 8 {
		t.Errorf("the dispatcher: %+v", got)
	}
}
