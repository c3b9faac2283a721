package privsep

import (
	"fmt"
	"os"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/security"
)

// service is who the workers run as, and whether the parent can make them so.
type service struct {
	security.Identity
	root     bool   // started as root: identity and groups can be changed
	schedUID uint32 // of SchedUser
}

// identify finds out who will serve and refuses whom must not.
func identify(c Config) (service, error) {
	if os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid() {
		return service{}, errs.New(errs.Denied, "refusing to start: this program is installed setuid or setgid").
			WithHint("chmod ug-s on the program")
	}
	s := service{root: os.Geteuid() == 0}
	var err error
	if s.Identity, err = chosen(c.User, c.Group); err != nil {
		return s, err
	}
	if !s.root {
		if s.UID != uint32(os.Getuid()) || s.GID != uint32(os.Getgid()) {
			return s, errs.New(errs.Denied, "only root can serve as another user or group (-u %s, -g %s)", c.User, c.Group).
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
	accounts, err := protectedAccounts(c.SchedUser)
	if err != nil {
		return s, err
	}
	s.schedUID = accounts[1].UID
	if c.Switches.DisableUserCheck {
		return s, nil
	}
	return s, security.CheckIdentity(s.Identity, accounts...)
}

// chosen is the identity of -u and -g; what isn't given is the starter's, or the
// user's own primary group.
func chosen(user, group string) (security.Identity, error) {
	id := security.Identity{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	id.Name = fmt.Sprintf("uid %d", id.UID)
	if user != "" {
		u, known, err := become.ParseUser(user)
		if err != nil {
			return id, errs.Wrap(err, errs.KindOf(err), "-u %s", user)
		}
		if !known && group == "" {
			return id, errs.New(errs.Invalid, "-u %s has no entry in the user database, so its group isn't known", user).
				WithHint("give one with -g")
		}
		id.Name, id.UID, id.GID = u.String(), u.UID, u.GID
	}
	if group != "" {
		g, err := become.ParseGroup(group)
		if err != nil {
			return id, errs.Wrap(err, errs.KindOf(err), "-g %s", group)
		}
		id.GID = g.GID
	}
	return id, nil
}

// protectedAccounts is the accounts whose authority no worker may have: root, then SchedUser.
func protectedAccounts(schedUser string) ([]security.Account, error) {
	root, err := become.LookupUID(0)
	if errs.KindOf(err) == errs.NotFound && err != nil {
		root, err = become.User{Name: "root"}, nil
	}
	if err != nil {
		return nil, err
	}
	sched, what := root, "SchedUser (root)"
	if schedUser != "" {
		if sched, _, err = become.ParseUser(schedUser); err != nil {
			return nil, errs.Wrap(err, errs.KindOf(err), "SchedUser=%s", schedUser)
		}
		what = "SchedUser " + schedUser
	}
	var list []security.Account
	for _, a := range []struct {
		what string
		user become.User
	}{{"root", root}, {what, sched}} {
		groups, err := become.Groups(a.user)
		if err != nil {
			return nil, err
		}
		list = append(list, security.Account{What: a.what, UID: a.user.UID, Groups: groups})
	}
	return list, nil
}
