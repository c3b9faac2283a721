package resolver

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/become/nss"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// site is a directory service, in which each user has the uid 1000.
type site struct {
	users   map[string]bool // true if the user is in a file of this machine
	answers error           // nil if the directory answers
	delay   time.Duration

	mu      sync.Mutex // guards lookups: look-ups go on after the answer
	lookups []string
}

func (s *site) lookup(name string) (nss.User, error) {
	s.mu.Lock()
	s.lookups = append(s.lookups, name)
	s.mu.Unlock()
	time.Sleep(s.delay)
	file, ok := s.users[name]
	switch {
	case ok && (file || s.answers == nil):
		return nss.User{Name: name, UID: 1000, Remote: !file}, nil
	case s.answers != nil:
		return nss.User{}, s.answers
	}
	return nss.User{}, errs.New(errs.NotFound, "none")
}

// TestAccounts checks, step by step, who exists. A site's directory goes down in
// two ways: getent fails, or getent does not find the users.
func TestAccounts(t *testing.T) {
	absent, down := errs.New(errs.NotFound, "none"), errs.New(errs.Unavailable, "down")
	type step struct {
		after  time.Duration
		change func(*site)
		name   string
		want   string // "yes", "no" or "unavailable"
	}
	delete := func(name string) func(*site) { return func(s *site) { delete(s.users, name) } }
	add := func(name string) func(*site) { return func(s *site) { s.users[name] = false } }
	stop := func(err error) func(*site) { return func(s *site) { s.answers = err } }
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"a user that exists", []step{{name: "alice", want: "yes"}}},
		{"a user in a file", []step{{name: "root", want: "yes", change: stop(down)}}},
		{"a name that no user has", []step{{name: "carol", want: "no"}}},
		{"a user that is created", []step{{name: "carol", want: "no"}, {after: unknownTTL, change: add("carol"), name: "carol", want: "yes"}}},
		{"a user that is deleted", []step{{name: "bob", want: "yes"}, {name: "alice", want: "yes"}, {after: accountTTL, change: delete("alice"), name: "alice", want: "no"}}},
		{"the only user that is known is deleted", []step{{name: "alice", want: "yes"}, {after: accountTTL, change: delete("alice"), name: "alice", want: "no"}}},
		{"getent fails", []step{{name: "alice", want: "yes"}, {after: accountTTL, change: stop(down), name: "alice", want: "yes"},
			{name: "bob", want: "unavailable"}, {after: accountAge, name: "alice", want: "unavailable"}, {change: stop(nil), name: "alice", want: "yes"}}},
		{"getent finds no users", []step{{name: "alice", want: "yes"}, {name: "bob", want: "yes"}, {after: accountTTL, change: stop(absent), name: "alice", want: "yes"},
			{name: "carol", want: "unavailable"}, {name: "root", want: "yes"}, {after: unknownTTL, change: stop(nil), name: "carol", want: "no"}}},
		{"another user is deleted, too", []step{{name: "alice", want: "yes"}, {name: "bob", want: "yes"}, {name: "dora", want: "yes"},
			{after: accountTTL, change: delete("dora"), name: "carol", want: "no"}, {after: accountTTL, change: delete("alice"), name: "alice", want: "no"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			d := newDirectory()
			d.now = func() time.Time { return now }
			s := &site{users: map[string]bool{"root": true, "alice": false, "bob": false, "dora": false}}
			d.accounts.lookup = s.lookup
			i := d.inquirer()
			for n, step := range tt.steps {
				now = now.Add(step.after)
				if step.change != nil {
					step.change(s)
				}
				a, err := i.resolve(question{name: step.name})
				got := "yes"
				switch {
				case err != nil:
					got = "unavailable"
				case a.number == ipc.NoID:
					got = "no"
				case a.number != 1000:
					got = fmt.Sprint(a.number)
				}
				if got != step.want {
					t.Errorf("step %d: %s exists: %s, want %s", n+1, step.name, got, step.want)
				}
			}
		})
	}
}

// TestSlowDirectory checks that a known user does not wait for a slow directory,
// and that the look-up goes on. An unknown user waits.
func TestSlowDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDirectory()
		s := &site{users: map[string]bool{"alice": false, "bob": false}}
		d.accounts.lookup = s.lookup
		i := d.inquirer()
		defer i.stop()
		resolve := func(name string) (number uint32, took time.Duration) {
			began := time.Now()
			a, err := i.resolve(question{name: name})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return a.number, time.Since(began)
		}
		resolve("alice")
		time.Sleep(accountTTL)
		s.delay = 4 * time.Second
		for range 3 {
			if n, took := resolve("alice"); n != 1000 || took > 2*patience {
				t.Errorf("uid %d after %s", n, took)
			}
		}
		if n, took := resolve("bob"); n != 1000 || took < s.delay {
			t.Errorf("a new user: uid %d after %s", n, took)
		}
		if n, took := resolve("alice"); n != 1000 || took > 0 {
			t.Errorf("after the look-up: uid %d after %s", n, took)
		}
		if len(s.lookups) != 3 {
			t.Errorf("looked up %v", s.lookups)
		}
	})
}

// TestUnknownNames checks that made-up names make the resolver forget no users,
// and are not all remembered.
func TestUnknownNames(t *testing.T) {
	d := newDirectory()
	s := &site{users: map[string]bool{"alice": true}}
	d.accounts.lookup = s.lookup
	i := d.inquirer()
	i.resolve(question{name: "alice"})
	for n := range maxUnknown + 5 {
		i.resolve(question{name: fmt.Sprint("made-up-", n)})
	}
	if n := len(d.accounts.unknown); n > maxUnknown {
		t.Errorf("%d names are remembered", n)
	}
	s.lookups = nil
	if a, err := i.resolve(question{name: "alice"}); a.number != 1000 || err != nil || len(s.lookups) > 0 {
		t.Errorf("uid %d, %v, looked up %v", a.number, err, s.lookups)
	}
}
