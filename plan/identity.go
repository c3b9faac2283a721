package plan

import (
	"slices"
	"strings"

	"schedrestd/become/nss"
	"schedrestd/errs"
	"schedrestd/ipc"
)

// service resolves the users and groups that determine the service identity:
// the values of -u and -g, root and SchedUser. The parent checks the result.
func (o *options) service(schedUser string) (s ipc.Service, err error) {
	if o.user != "" {
		u, known, err := nss.ParseUser(o.user)
		if err != nil {
			return s, missing(err, "-u "+o.user, "useradd --system --no-create-home --shell /usr/sbin/nologin "+o.user)
		}
		if !known && o.group == "" {
			return s, errs.New(errs.Invalid, "-u %s has no entry in the user database, so its group isn't known", o.user).
				WithHint("set the group with -g")
		}
		s.HasUser, s.HasGroup, s.Name, s.UID, s.GID = true, true, u.String(), u.UID, u.GID
	}
	if o.group != "" {
		g, err := nss.ParseGroup(o.group)
		if err != nil {
			return s, missing(err, "-g "+o.group, "groupadd --system "+o.group)
		}
		s.HasGroup, s.GID = true, g.GID
	}
	s.Given = o.given()
	return s, protect(&s, schedUser)
}

// protect adds the accounts whose privileges no worker may have: root and
// SchedUser, with all their names. Their names are looked up once, at the
// start, so that a name in an unverified token needs no look-up.
func protect(s *ipc.Service, schedUser string) error {
	root, err := nss.LookupUID(0)
	if errs.KindOf(err) == errs.NotFound {
		root, err = nss.User{Name: "root"}, nil
	}
	if err != nil {
		return err
	}
	sched := root
	if schedUser != "" {
		s.SchedUser = schedUser
		if sched, _, err = nss.ParseUser(schedUser); err != nil {
			return errs.Wrap(err, errs.KindOf(err), "SchedUser=%s", schedUser)
		}
	}
	s.SchedUID = sched.UID
	if s.RootGroups, err = nss.Groups(root); err != nil {
		return err
	}
	if s.SchedGroups, err = nss.Groups(sched); err != nil {
		return err
	}
	s.Privileged = []string{"root"}
	for _, uid := range []uint32{0, s.SchedUID} {
		names, err := nss.NamesOf(uid)
		if err != nil {
			return err
		}
		s.Privileged = append(s.Privileged, names...)
	}
	slices.Sort(s.Privileged)
	s.Privileged = slices.Compact(s.Privileged)
	return nil
}

// missing returns err with the name of the option in front. If the named user
// or group does not exist, it adds a hint with the command that creates it.
func missing(err error, option, remedy string) error {
	e := &errs.Error{Kind: errs.KindOf(err), Message: option, Err: err}
	if e.Kind == errs.NotFound {
		e.Hint = "use an existing one, or create it: " + remedy
	}
	return e
}

// given returns the -u and -g options that were used.
func (o *options) given() string {
	var list []string
	for _, one := range []struct{ flag, value string }{{"-u", o.user}, {"-g", o.group}} {
		if one.value != "" {
			list = append(list, one.flag+" "+one.value)
		}
	}
	return strings.Join(list, " ")
}

// socketGID returns the gid of --socket-group.
func (o *options) socketGID() (gid uint32, given bool, err error) {
	if o.socketGroup == "" {
		return 0, false, nil
	}
	g, err := nss.ParseGroup(o.socketGroup)
	if err != nil {
		return 0, true, missing(err, "--socket-group "+o.socketGroup, "groupadd --system "+o.socketGroup)
	}
	return g.GID, true, nil
}
