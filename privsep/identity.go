package privsep

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"schedrestd/become"
	"schedrestd/endpoint"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// service is who the workers run as, and whether the parent can make them so.
type service struct {
	security.Identity
	root     bool     // started as root: identity and groups can be changed
	schedUID uint32   // of SchedUser
	names    []string // each name of root and SchedUser
	unfit    error    // why it would not be served as, but for disable_user_check
}

// identify finds out who will serve and refuses whom must not.
func identify(c Config) (service, error) {
	if os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid() {
		return service{}, errs.New(errs.Denied, "refusing to start: this program is installed setuid or setgid").
			WithHint("chmod ug-s on the program")
	}
	s := service{root: os.Geteuid() == 0}
	if c.Switches.BecomeUser {
		return s.becoming(c)
	}
	var err error
	if s.Identity, err = chosen(c.User, c.Group); err != nil {
		return s, err
	}
	if !s.root {
		if s.UID != uint32(os.Getuid()) || s.GID != uint32(os.Getgid()) {
			return s, errs.New(errs.Denied, "only root can serve as another user or group (%s)", given(c)).
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
	if err := s.protect(accounts); err != nil {
		return s, err
	}
	s.unfit = security.CheckIdentity(s.Identity, accounts...)
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
	accounts, err := protectedAccounts(c.SchedUser)
	if err == nil {
		err = s.protect(accounts)
	}
	return s, err
}

// protect notes by which number and which names root and SchedUser are known. They are looked up
// once: the name in a token that nobody has verified must cost no look-up.
func (s *service) protect(accounts []security.Account) error {
	s.schedUID, s.names = accounts[1].UID, []string{"root"}
	for _, uid := range []uint32{0, s.schedUID} {
		names, err := become.NamesOf(uid)
		if err != nil {
			return err
		}
		s.names = append(s.names, names...)
	}
	slices.Sort(s.names)
	s.names = slices.Compact(s.names)
	return nil
}

// suitsBecoming refuses what does not go together with become_user.
func (c Config) suitsBecoming(root bool) error {
	refuse := func(why, hint string) error {
		return errs.New(errs.Invalid, "SCHEDRESTD_SECURITY=become_user %s", why).WithHint("%s", hint)
	}
	if !root {
		return refuse("needs root, to start a worker as each user", "start as root, or without become_user")
	}
	if c.User != "" || c.Group != "" {
		return refuse("serves each user as himself, not as -u or -g", "leave out -u and -g, or become_user")
	}
	if c.Setup.JWT {
		return refuse("can't be served with rest_auth/jwt: a token is not what the kernel vouches for", "-a rest_auth/local, and no SCHED_JWT in the environment")
	}
	if !c.Setup.Local {
		return refuse("needs rest_auth/local", "-a rest_auth/local")
	}
	for _, text := range c.Listen {
		if e, err := endpoint.Parse(text); err == nil && e.Network != ipc.Unix {
			return refuse("can't listen on "+text+": the kernel does not say who is at the other end", "listen on unix:/path/to/socket alone")
		}
	}
	return nil
}

// chosen is the identity of -u and -g; what isn't given is the starter's, or the
// user's own primary group.
func chosen(user, group string) (security.Identity, error) {
	id := security.Identity{UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	id.Name = fmt.Sprintf("uid %d", id.UID)
	if user != "" {
		u, known, err := become.ParseUser(user)
		if err != nil {
			return id, missing(err, "-u "+user, "useradd --system --no-create-home --shell /usr/sbin/nologin "+user)
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
			return id, missing(err, "-g "+group, "groupadd --system "+group)
		}
		id.GID = g.GID
	}
	return id, nil
}

// missing is err about an option, with what would make it good if all that is wrong is that nobody
// has that name.
func missing(err error, option, remedy string) error {
	e := &errs.Error{Kind: errs.KindOf(err), Message: option, Err: err}
	if e.Kind == errs.NotFound {
		e.Hint = "name one that exists, or make it: " + remedy
	}
	return e
}

// protectedAccounts is the accounts whose authority no worker may have: root, then SchedUser.
func protectedAccounts(schedUser string) ([]security.Account, error) {
	root, err := become.LookupUID(0)
	if errs.KindOf(err) == errs.NotFound {
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

// given is -u and -g, as far as they were.
func given(c Config) string {
	var list []string
	for _, one := range []struct{ flag, value string }{{"-u", c.User}, {"-g", c.Group}} {
		if one.value != "" {
			list = append(list, one.flag+" "+one.value)
		}
	}
	return strings.Join(list, " ")
}
