package privsep

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

// service is who the workers run as, and whether the parent can make them so.
type service struct {
	security.Identity
	root     bool     // started as root: identity and groups can be changed
	schedUID uint32   // of SchedUser
	schedGID uint32   // its primary group; 0: none is known
	names    []string // each name of root and SchedUser
	unfit    error    // why it would not be served as, but for disable_user_check
}

// identify finds out who will serve and refuses whom must not.
func identify(c Config) (service, error) {
	if err := security.RefuseSetuid(); err != nil {
		return service{}, err
	}
	s := service{root: os.Geteuid() == 0}
	if c.Switches.BecomeUser {
		return s.becoming(c)
	}
	s.Identity = chosen(c.Service)
	if !s.root {
		if s.UID != uint32(os.Getuid()) || s.GID != uint32(os.Getgid()) {
			return s, errs.New(errs.Denied, "only root can serve as another user or group (%s)", c.Service.Given).
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
	s.protect(c.Service)
	s.unfit = security.CheckIdentity(s.Identity, protectedAccounts(c.Service)...)
	if c.Switches.DisableUserCheck {
		return s, nil
	}
	return s, errs.Wrap(s.unfit, errs.Denied, "refusing to start")
}

// becoming is the service of become_user: there is no identity but the peers', so that each of them
// must be one that the kernel vouches for, and nothing else may let anybody in.
func (s service) becoming(c Config) (service, error) {
	s.Identity = security.Identity{Name: "each user", UID: become.NoID, GID: become.NoID}
	if err := c.suitsBecoming(s.root); err != nil {
		return s, err
	}
	if c.Switches.DisableUserCheck {
		s.unfit = errors.New("would serve root and SchedUser as themselves")
	}
	s.protect(c.Service)
	return s, nil
}

// protect notes by which number and which names root and SchedUser are known.
func (s *service) protect(from ipc.Service) {
	s.schedUID, s.names = from.SchedUID, from.Privileged
	if len(from.SchedGroups) > 0 {
		s.schedGID = from.SchedGroups[0]
	}
	if !slices.Contains(s.names, "root") {
		s.names = append([]string{"root"}, s.names...)
	}
}

// suitsBecoming refuses what does not go together with become_user.
func (c Config) suitsBecoming(root bool) error {
	refuse := func(why, hint string) error {
		return errs.New(errs.Invalid, "SCHEDRESTD_SECURITY=become_user %s", why).WithHint("%s", hint)
	}
	if !root {
		return refuse("needs root, to start a worker as each user", "start as root, or without become_user")
	}
	if c.Service.Given != "" {
		return refuse("serves each user as himself, not as -u or -g", "leave out -u and -g, or become_user")
	}
	if c.Setup.JWT {
		return refuse("can't be served with rest_auth/jwt: a token is not what the kernel vouches for", "-a rest_auth/local, and no SCHED_JWT in the environment")
	}
	if !c.Setup.Local {
		return refuse("needs rest_auth/local", "-a rest_auth/local")
	}
	for _, l := range c.Listen {
		if l.Network != ipc.Unix {
			return refuse("can't listen on "+l.Text+": the kernel does not say who is at the other end", "listen on unix:/path/to/socket alone")
		}
	}
	return nil
}

// chosen is the identity of -u and -g; what isn't given is the starter's.
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

// protectedAccounts is the accounts whose authority no worker may have: root, then SchedUser.
func protectedAccounts(s ipc.Service) []security.Account {
	what := "SchedUser (root)"
	if s.SchedUser != "" {
		what = "SchedUser " + s.SchedUser
	}
	return []security.Account{{What: "root", UID: 0, Groups: append([]uint32{0}, s.RootGroups...)}, {What: what, UID: s.SchedUID, Groups: s.SchedGroups}}
}
