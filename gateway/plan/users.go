package plan

import (
	"fmt"
	"log/slog"

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
}

var systemUsers = userDatabase{nss.LookupUser, nss.LookupUID, nss.LookupGID}

// roleUsers returns the user of each role. For a role without a system user, it
// chooses an id that neither a user nor a group has, and that is in no range of
// subordinate uids. While the user database is unavailable, it does not look
// for users, because each look-up could take seconds.
func (db userDatabase) roleUsers(subuids []ipc.Subuids, log *slog.Logger) ([]ipc.RoleUser, error) {
	var users []ipc.RoleUser
	taken := map[uint32]bool{}
	isAvailable := true
	note := func(err error) {
		if err != nil && errs.KindOf(err) != errs.NotFound && isAvailable {
			isAvailable = false
			log.Warn("user database unavailable; the gateway's processes get ids that were not looked up", "error", err)
		}
	}
	for _, named := range userNames {
		u, err := nss.User{}, error(errs.New(errs.NotFound, "not looked up"))
		if isAvailable {
			u, err = db.user(named.Name)
			note(err)
		}
		if err == nil && u.UID != 0 && u.GID != 0 && !taken[u.UID] {
			taken[u.UID] = true
			users = append(users, ipc.RoleUser{Role: named.Role, Name: named.Name, UID: u.UID, GID: u.GID})
			continue
		}
		id, err := db.unusedID(func(id uint32) bool {
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
		})
		if err != nil {
			return nil, err
		}
		taken[id] = true
		users = append(users, ipc.RoleUser{Role: named.Role, Name: fmt.Sprintf("uid %d", id), UID: id, GID: id})
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

// unusedAttempts limits the search for an id.
const unusedAttempts = 1000

// unusedID returns an id that is free.
func (db userDatabase) unusedID(isFree func(uint32) bool) (uint32, error) {
	for range unusedAttempts {
		id, err := become.UnusedID()
		if err != nil {
			return 0, err
		}
		if isFree(id) {
			return id, nil
		}
	}
	return 0, errs.New(errs.Unavailable, "users or subordinate ids have all ids that could be used for the gateway's processes").
		WithHint("systemd-sysusers  # creates users for them")
}
