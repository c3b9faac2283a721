package plan

import (
	"fmt"
	"log/slog"
	"slices"

	"schedrestd/become"
	"schedrestd/become/nss"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// userNames lists the system users of the gateway's processes. The package or
// the administrator creates them. The user of the role Worker runs the workers
// that serve no particular user.
var userNames = []ipc.RoleUser{
	{Role: ipc.Dispatcher, Name: "schedrestd-dispatcher"},
	{Role: ipc.Keeper, Name: "schedrestd-keeper"},
	{Role: ipc.Resolver, Name: "schedrestd-resolver"},
	{Role: ipc.Auditor, Name: "schedrestd-auditor"},
	{Role: ipc.Exporter, Name: "schedrestd-exporter"},
	{Role: ipc.Worker, Name: "schedrestd-standby"},
}

// A userDatabase looks up users and groups.
type userDatabase struct {
	user func(name string) (nss.User, error)
	uid  func(uint32) (nss.User, error)
	gid  func(uint32) (nss.Group, error)
	// preloadUsers and preloadGroups prepare the look-ups of several names or
	// ids together, because each look-up of its own may start a process.
	preloadUsers, preloadGroups func(keys []string)
}

var systemUsers = userDatabase{nss.LookupUser, nss.LookupUID, nss.LookupGID, nss.PreloadUsers, nss.PreloadGroups}

// roleUsers returns the user of each role. For a role without a system user, it
// chooses an id that neither a user nor a group has, and that is in no range of
// subordinate uids. While the user database is unavailable, it does not look
// for users, because each look-up could take seconds.
func (db userDatabase) roleUsers(subuids []ipc.Subuids, log *slog.Logger) ([]ipc.RoleUser, error) {
	users := slices.Clone(userNames)
	taken := map[uint32]bool{}
	isAvailable := true
	note := func(err error) {
		if err != nil && errs.KindOf(err) != errs.NotFound && isAvailable {
			isAvailable = false
			log.Warn("user database unavailable; the gateway's processes get ids that were not looked up", "error", err)
		}
	}
	var names []string
	for _, named := range userNames {
		names = append(names, named.Name)
	}
	db.preloadUsers(names)
	var unnamed []*ipc.RoleUser
	for i, named := range userNames {
		u, err := nss.User{}, error(errs.New(errs.NotFound, "not looked up"))
		if isAvailable {
			u, err = db.user(named.Name)
			note(err)
		}
		if err != nil || u.UID == 0 || u.GID == 0 || taken[u.UID] {
			unnamed = append(unnamed, &users[i])
			continue
		}
		taken[u.UID] = true
		users[i].UID, users[i].GID = u.UID, u.GID
	}
	ids, err := unusedIDs(len(unnamed), func(id uint32) bool {
		if taken[id] || ipc.OwnerOf(subuids, id) != id {
			return false
		}
		if !isAvailable {
			return true
		}
		_, uidErr := db.uid(id)
		note(uidErr)
		if uidErr == nil || !isAvailable {
			return uidErr != nil
		}
		_, gidErr := db.gid(id)
		note(gidErr)
		return gidErr != nil
	}, func(keys []string) {
		if isAvailable {
			db.preloadUsers(keys)
			db.preloadGroups(keys)
		}
	})
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		unnamed[i].Name, unnamed[i].UID, unnamed[i].GID = fmt.Sprintf("uid %d", id), id, id
	}
	return users, nil
}

// logUsers logs the users of the roles.
func logUsers(users []ipc.RoleUser, log *slog.Logger) {
	var attrs []any
	for _, u := range users {
		name := u.Role.String()
		if u.Role == ipc.Worker {
			name = "standby"
		}
		attrs = append(attrs, name, u.Name)
	}
	log.Info("users of the processes", attrs...)
}

// unusedAttempts limits the search for ids.
const unusedAttempts = 1000

// unusedIDs returns n different ids that are free. It calls preload with the ids
// that it is about to examine.
func unusedIDs(n int, isFree func(uint32) bool, preload func(keys []string)) (ids []uint32, err error) {
	for range unusedAttempts {
		if len(ids) == n {
			return ids, nil
		}
		var candidates []uint32
		var keys []string
		for range n - len(ids) {
			id, err := become.UnusedID()
			if err != nil {
				return nil, err
			}
			candidates, keys = append(candidates, id), append(keys, fmt.Sprint(id))
		}
		preload(keys)
		for _, id := range candidates {
			if !slices.Contains(ids, id) && isFree(id) {
				ids = append(ids, id)
			}
		}
	}
	return nil, errs.New(errs.Unavailable, "users or subordinate ids have all ids that could be used for the gateway's processes").
		WithHint("systemd-sysusers  # creates users for them")
}
