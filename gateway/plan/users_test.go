package plan

import (
	"log/slog"
	"strings"
	"testing"

	"schedrestd/become/nss"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// TestRoleUsers checks that each role has a user of its own: the system user
// with the role's name, or otherwise an id that belongs to no user, to no group
// and to no range of subordinate uids.
func TestRoleUsers(t *testing.T) {
	notFound := errs.New(errs.NotFound, "no such entry")
	unavailable := errs.New(errs.Unavailable, "the server does not answer")
	none := func(uint32) (nss.User, error) { return nss.User{}, notFound }
	noGroup := func(uint32) (nss.Group, error) { return nss.Group{}, notFound }
	byName := func(ids map[string]uint32) func(string) (nss.User, error) {
		return func(name string) (nss.User, error) {
			if id, ok := ids[name]; ok {
				return nss.User{Name: name, UID: id, GID: id + 1}, nil
			}
			return nss.User{}, notFound
		}
	}
	all := map[string]uint32{}
	for i, u := range userNames {
		all[u.Name] = 900 + 2*uint32(i)
	}
	same := map[string]uint32{}
	for _, u := range userNames {
		same[u.Name] = 900
	}
	allIDs := []ipc.Subuids{{First: 1000, Last: ^uint32(0), Owner: 1000}}
	odd := func(id uint32) (nss.User, error) {
		if id%2 == 1 {
			return nss.User{Name: "a user", UID: id}, nil
		}
		return nss.User{}, notFound
	}
	thirds := func(id uint32) (nss.Group, error) {
		if id%3 != 0 {
			return nss.Group{Name: "a group", GID: id}, nil
		}
		return nss.Group{}, notFound
	}
	lookups := 0
	for _, tt := range []struct {
		name    string
		db      userDatabase
		subuids []ipc.Subuids
		named   int // users with a name
		logged  string
		err     string
		check   func(id uint32) bool
	}{
		{name: "system users", db: userDatabase{user: byName(all), uid: none, gid: noGroup}, named: len(userNames)},
		{name: "only some", db: userDatabase{user: byName(map[string]uint32{"schedrestd-keeper": 900}), uid: none, gid: noGroup}, named: 1},
		{name: "all the same user", db: userDatabase{user: byName(same), uid: none, gid: noGroup}, named: 1},
		{name: "root", db: userDatabase{user: byName(map[string]uint32{"schedrestd-keeper": 0}), uid: none, gid: noGroup}},
		{name: "no system users", db: userDatabase{user: byName(nil), uid: odd, gid: thirds}, check: func(id uint32) bool { return id%2 == 0 && id%3 == 0 }},
		{name: "every id is a subordinate one", db: userDatabase{user: byName(nil), uid: none, gid: noGroup}, subuids: allIDs, err: "have all ids"},
		{name: "no user database", db: userDatabase{user: func(string) (nss.User, error) { lookups++; return nss.User{}, unavailable }, uid: none, gid: noGroup}, logged: "user database unavailable"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log strings.Builder
			lookups = 0
			tt.db.preloadUsers, tt.db.preloadGroups = func([]string) {}, func([]string) {}
			users, err := tt.db.roleUsers(tt.subuids, slog.New(slog.NewTextHandler(&log, nil)))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("%v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || len(users) != len(userNames) {
				t.Fatalf("%v, %v", users, err)
			}
			named, seen := 0, map[uint32]bool{}
			for _, u := range users {
				if seen[u.UID] || u.UID == 0 || u.GID == 0 {
					t.Errorf("%+v: root's, or another role's id", u)
				}
				seen[u.UID] = true
				if strings.HasPrefix(u.Name, "schedrestd-") {
					named++
				} else if tt.check != nil && !tt.check(u.UID) {
					t.Errorf("uid %d belongs to a user or group", u.UID)
				}
			}
			if named != tt.named {
				t.Errorf("%d users have names, want %d: %+v", named, tt.named, users)
			}
			if !strings.Contains(log.String(), tt.logged) || tt.logged == "" && log.Len() > 0 || lookups > 1 {
				t.Errorf("%d look-ups, logged %q", lookups, log.String())
			}
		})
	}
}
