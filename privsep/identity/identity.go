// Package identity determines the identity of the workers. It rejects
// identities that would give a worker the authority of root or SchedUser. With
// become_user it rejects configurations in which the kernel does not identify
// every client.
package identity

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"schedrestd/become"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// Service is the identity of the workers. It also records whether the parent
// can change identities.
type Service struct {
	security.Identity
	Root         bool   // the parent was started as root, so it can change identity and groups
	SchedUID     uint32 // uid of SchedUser
	SchedGroups  []uint32
	MinUID       uint32 // see Vouched
	UserCheckErr error  // why this identity would be rejected without disable_user_check

	taken map[uint32]string              // if Root: the uids as which no user's process may run, and whose they are
	Users map[ipc.Role]security.Identity // if Root: the users of the processes that do not run as a client's or the service's user
}

// Determine returns the service identity, or an error if that identity is
// forbidden.
func Determine(p *ipc.PackedPlan) (Service, error) {
	s := Service{Identity: requestedIdentity(p.Service), Root: os.Geteuid() == 0, SchedUID: p.Service.SchedUID, SchedGroups: p.Service.SchedGroups, MinUID: p.Service.MinUID}
	if s.Root {
		if err := s.findUsers(p); err != nil {
			return s, err
		}
	}
	if p.Switches.BecomeUser {
		return s.becomeUserService(p)
	}
	if !s.Root {
		if s.UID != uint32(os.Getuid()) || s.GID != uint32(os.Getgid()) {
			return s, errs.New(errs.Denied, "serving as another user or group needs root (%s)", p.Service.Options).
				WithHint("start as root, or as that user without -u and -g")
		}
		groups, err := os.Getgroups()
		if err != nil {
			return s, errs.Wrap(err, errs.Internal, "read the groups of this process")
		}
		for _, g := range groups {
			s.Groups = append(s.Groups, uint32(g))
		}
	}
	s.UserCheckErr = security.CheckIdentity(s.Identity, protectedAccounts(p.Service)...)
	if p.Switches.DisableUserCheck {
		return s, nil
	}
	return s, errs.Wrap(s.UserCheckErr, errs.Denied, "refusing to start")
}

// becomeUserService returns s with the settings for become_user, which gives
// each worker the identity of its client. It returns an error if the
// configuration would allow clients that the kernel does not identify.
func (s Service) becomeUserService(p *ipc.PackedPlan) (Service, error) {
	s.Identity = security.Identity{Name: "each user", UID: become.NoID, GID: become.NoID}
	if err := CheckBecomeUser(p, s.Root); err != nil {
		return s, err
	}
	if p.Switches.DisableUserCheck {
		s.UserCheckErr = errors.New("root and SchedUser would be served by workers with their own rights")
	}
	return s, nil
}

// CheckBecomeUser rejects settings that are incompatible with become_user.
// Normally schedrestd-config has already rejected them, with a more detailed
// error. CheckBecomeUser protects the parent if schedrestd-config is
// compromised.
func CheckBecomeUser(p *ipc.PackedPlan, root bool) error {
	nonUnix := slices.ContainsFunc(p.Listen, func(l ipc.Listen) bool { return l.Network != ipc.Unix })
	if !root || p.Service.Options != "" || p.Setup.JWT || !p.Setup.Local || nonUnix {
		return errs.New(errs.Invalid, "become_user needs root, rest_auth/local alone, UNIX sockets, and neither -u nor -g")
	}
	return nil
}

// requestedIdentity returns the identity that the options -u and -g select. In
// place of a missing option, it uses the user or the group of the process that
// started the gateway.
func requestedIdentity(s ipc.Service) security.Identity {
	id := security.Identity{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	id.Name = fmt.Sprintf("uid %d", id.UID)
	if s.HasUser {
		id.Name, id.UID = s.Name, s.UID
	}
	if s.HasGroup {
		id.GID = s.GID
	}
	return id
}

// protectedAccounts returns the accounts whose authority workers must not have:
// root, then SchedUser.
func protectedAccounts(s ipc.Service) []security.Account {
	schedName := "SchedUser " + cmp.Or(s.SchedUser, "(root)")
	return []security.Account{{Name: "root", UID: 0, Groups: append([]uint32{0}, s.RootGroups...)}, {Name: schedName, UID: s.SchedUID, Groups: s.SchedGroups}}
}

// Vouched returns the identity of a process for a user for whom the keeper vouches.
// If ok is false, no process may run as this user. A keeper in the hands of an
// attacker must not get the rights of the system's users and groups, or of SchedUser's.
func (s Service) Vouched(v *ipc.Vouch) (id security.Identity, ok bool) {
	isSystem := func(gid uint32) bool { return gid < s.MinUID || slices.Contains(s.SchedGroups, gid) }
	if id = (security.Identity{UID: v.UID, GID: v.GID, Groups: slices.DeleteFunc(v.Groups, isSystem)}); isSystem(v.GID) {
		id.GID = become.Overflow // such as the group of all users
	}
	_, taken := s.taken[v.UID]
	return id, !taken && v.UID >= s.MinUID
}

// RefusalReason returns the reason why the peer of a connection may not have
// its own worker, or "" if the peer may have one. A worker of root or SchedUser
// would have that account's authority. An overflow id can stand for many users.
// The argument unchecked is true if disable_user_check is set.
func (s Service) RefusalReason(c ipc.Connection, unchecked bool) string {
	switch {
	case c.Network == ipc.TCP || c.UID == ipc.NoID:
		return "the kernel does not say whose it is"
	case c.UID == 0 && !unchecked:
		return "it is root's, who gets no worker"
	case !c.Verified && c.GID == 0:
		return "its group is 0, and its worker could write what group root may write"
	case !c.Verified:
		return "its uid and gid belong to no user"
	case unchecked:
		return ""
	case c.UID == s.SchedUID:
		return "it is SchedUser's, who gets no worker"
	}
	return ""
}
