package identity

import (
	"fmt"

	"schedrestd/become"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// UserRoles lists the roles whose processes have users of their own if root
// starts the gateway. The user of the role Worker runs the workers that serve
// no particular user.
var UserRoles = []ipc.Role{ipc.Dispatcher, ipc.Keeper, ipc.Resolver, ipc.Auditor, ipc.Exporter, ipc.Worker}

// Users holds the identities of processes by role.
type Users map[ipc.Role]security.Identity

// RoleUsers returns the identity for each role, from the Plan or otherwise with
// an id that belongs to no user. It rejects a Plan in which two of these
// processes, or one of them and the service identity or SchedUser, have the
// same uid: each of them could stop and trace the other one.
func (s Service) RoleUsers(p *ipc.PackedPlan) (Users, error) {
	users := Users{}
	taken := map[uint32]string{0: "root", become.Overflow: "the overflow id", become.NoID: "no user", s.SchedUID: "SchedUser", s.UID: s.Name}
	for _, u := range p.Users {
		users[u.Role] = security.Identity{Name: u.Name, UID: u.UID, GID: u.GID}
	}
	for _, role := range UserRoles {
		id, ok := users[role]
		for !ok {
			n, err := become.UnusedID()
			if err != nil {
				return nil, err
			}
			id = security.Identity{UID: n, GID: n}
			_, isTaken := taken[n]
			ok = !isTaken
		}
		if other, isTaken := taken[id.UID]; isTaken || id.GID == 0 {
			return nil, errs.New(errs.Denied, "user %q of the %s: its uid %d is that of %s, or its group is 0", id.Name, role, id.UID, other).
				WithHint("give each of the users schedrestd-* a uid and a group of its own")
		}
		if id.Name == "" {
			id.Name = fmt.Sprintf("uid %d", id.UID)
		}
		taken[id.UID] = "the " + role.String()
		users[role] = id
	}
	return users, nil
}
