// Package identity determines the identity of the workers, and rejects those
// whose authority no worker may have: root, SchedUser, and with become_user
// every configuration that admits clients without an identity from the kernel.
package identity

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// Service is the identity of the workers, and whether the parent can change to
// it.
type Service struct {
	security.Identity
	Root     bool   // started as root: identity and groups can be changed
	SchedUID uint32 // of SchedUser
	Unfit    error  // why it would be rejected without disable_user_check
}

// Determine determines the service identity and rejects forbidden ones.
func Determine(p *ipc.WholePlan) (Service, error) {
	s := Service{Root: os.Geteuid() == 0, SchedUID: p.Service.SchedUID}
	if p.Switches.BecomeUser {
		return s.becoming(p)
	}
	s.Identity = chosen(p.Service)
	if !s.Root {
		if s.UID != uint32(os.Getuid()) || s.GID != uint32(os.Getgid()) {
			return s, errs.New(errs.Denied, "serving as another user or group needs root (%s)", p.Service.Given).
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
	s.Unfit = security.CheckIdentity(s.Identity, ProtectedAccounts(p.Service)...)
	if p.Switches.DisableUserCheck {
		return s, nil
	}
	return s, errs.Wrap(s.Unfit, errs.Denied, "refusing to start")
}

// becoming returns the service of become_user. Its identities are those of the
// peers, so the kernel must report each of them, and nothing else may admit a
// client.
func (s Service) becoming(p *ipc.WholePlan) (Service, error) {
	s.Identity = security.Identity{Name: "each user", UID: become.NoID, GID: become.NoID}
	if err := CheckBecoming(p, s.Root); err != nil {
		return s, err
	}
	if p.Switches.DisableUserCheck {
		s.Unfit = errors.New("root and SchedUser would be served by workers with their own rights")
	}
	return s, nil
}

// CheckBecoming rejects settings that are incompatible with become_user.
// schedrestd-config has rejected them with the details.
func CheckBecoming(p *ipc.WholePlan, root bool) error {
	elsewhere := slices.ContainsFunc(p.Listen, func(l ipc.Listen) bool { return l.Network != ipc.Unix })
	if !root || p.Service.Given != "" || p.Setup.JWT || !p.Setup.Local || elsewhere {
		return errs.New(errs.Invalid, "become_user needs root, rest_auth/local alone, UNIX sockets, and neither -u nor -g")
	}
	return nil
}

// chosen returns the identity of -u and -g. A part that isn't given comes from the starter.
func chosen(s ipc.Service) security.Identity {
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

// ProtectedAccounts returns the accounts whose authority no worker may have: root, then SchedUser.
func ProtectedAccounts(s ipc.Service) []security.Account {
	what := "SchedUser (root)"
	if s.SchedUser != "" {
		what = "SchedUser " + s.SchedUser
	}
	return []security.Account{{What: "root", UID: 0, Groups: append([]uint32{0}, s.RootGroups...)}, {What: what, UID: s.SchedUID, Groups: s.SchedGroups}}
}

// Refuses returns why the peer of a connection may not have a worker of its own;
// "" when it may. A worker of root or SchedUser would have their authority, and
// the overflow ids are shared by many users. unchecked stands for
// disable_user_check.
func (s Service) Refuses(c ipc.Connection, unchecked bool) string {
	switch {
	case c.Network == ipc.TCP || c.UID == ipc.NoID:
		return "the kernel does not say who it is"
	case c.UID == 0 && !unchecked:
		return "it is root's, who gets no worker"
	case !c.Verified && c.GID == 0:
		return "its group is 0, and a worker of that could write what group root may"
	case !c.Verified:
		return "its uid and gid belong to no user"
	case unchecked:
		return ""
	case c.UID == s.SchedUID:
		return "it is SchedUser's, who gets no worker"
	}
	return ""
}
