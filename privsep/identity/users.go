package identity

import (
	"schedrestd/become"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// Roles lists the roles that have a program of their own. If root starts the
// gateway, the processes of each role have a user of their own. The user of the
// role Worker runs the workers that serve no particular user.
var Roles = []ipc.Role{ipc.Worker, ipc.Dispatcher, ipc.Keeper, ipc.Resolver, ipc.Auditor, ipc.Exporter}

// findUsers sets the user of each role. It rejects a Plan that names none
// for a role. It also rejects a Plan in which two of these users, or one of
// them and the service identity or SchedUser, have the same uid: each of them
// could stop and trace the processes of the other one.
func (s *Service) findUsers(p *ipc.PackedPlan) error {
	s.Users = map[ipc.Role]security.Identity{}
	for _, u := range p.Users {
		s.Users[u.Role] = security.Identity{Name: u.Name, UID: u.UID, GID: u.GID}
	}
	taken := map[uint32]string{0: "root", become.Overflow: "the overflow id", become.NoID: "no user", s.SchedUID: "SchedUser", s.UID: s.Name}
	for _, role := range Roles {
		id := s.Users[role] // uid 0 if the Plan names no user
		if other, isTaken := taken[id.UID]; isTaken || id.GID == 0 {
			return errs.New(errs.Denied, "user %q of the %s: its uid %d is that of %s, or its group is 0", id.Name, role, id.UID, other).
				WithHint("give each of the users schedrestd-* a uid and a group of its own")
		}
		taken[id.UID] = "the " + role.String()
	}
	s.taken = taken
	return nil
}
