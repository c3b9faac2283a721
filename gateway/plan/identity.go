package plan

import (
	"slices"
	"strings"

	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// resolveService looks up the arguments of -u and -g, which name the user and
// the group of the service. It also looks up root and SchedUser. The parent
// checks the result.
func (o *options) resolveService(schedUser string) (s ipc.Service, err error) {
	if o.User != "" {
		u, hasEntry, err := nss.ParseUser(o.User)
		if err != nil {
			return s, lookupError(err, "-u "+o.User, "useradd --system --no-create-home --shell /usr/sbin/nologin "+o.User)
		}
		if !hasEntry && o.Group == "" {
			return s, errs.New(errs.Invalid, "-u %s has no entry in the user database, so its group isn't known", o.User).
				WithHint("set the group with -g")
		}
		s.HasUser, s.HasGroup, s.Name, s.UID, s.GID = true, true, u.String(), u.UID, u.GID
	}
	if o.Group != "" {
		g, err := nss.ParseGroup(o.Group)
		if err != nil {
			return s, lookupError(err, "-g "+o.Group, "groupadd --system "+o.Group)
		}
		s.HasGroup, s.GID = true, g.GID
	}
	s.Options = o.identityFlags()
	return s, addPrivileged(&s, schedUser)
}

// addPrivileged adds the accounts whose privileges are forbidden to workers:
// root and SchedUser. Each account may have several names. The names are looked
// up once, at the start, so that a name in an unverified token needs no
// look-up.
func addPrivileged(s *ipc.Service, schedUser string) error {
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

// lookupError returns err, prefixed with the name of the option. If the user or
// group does not exist, it adds a hint. The hint contains remedy, which is the
// command that creates the user or group.
func lookupError(err error, option, remedy string) error {
	e := &errs.Error{Kind: errs.KindOf(err), Message: option, Err: err}
	if e.Kind == errs.NotFound {
		e.Hint = "use an existing one, or create it: " + remedy
	}
	return e
}

// identityFlags returns the -u and -g options that were used.
func (o *options) identityFlags() string {
	var list []string
	for _, opt := range []struct{ flag, value string }{{"-u", o.User}, {"-g", o.Group}} {
		if opt.value != "" {
			list = append(list, opt.flag+" "+opt.value)
		}
	}
	return strings.Join(list, " ")
}

// socketGID returns the gid of --socket-group.
func (o *options) socketGID() (gid uint32, ok bool, err error) {
	if o.SocketGroup == "" {
		return 0, false, nil
	}
	g, err := nss.ParseGroup(o.SocketGroup)
	if err != nil {
		return 0, true, lookupError(err, "--socket-group "+o.SocketGroup, "groupadd --system "+o.SocketGroup)
	}
	return g.GID, true, nil
}

// schedUser looks up SchedUser. It returns root if the configuration does not
// set SchedUser.
func schedUser(c *conf.Cluster) (nss.User, error) {
	if c.User == "" {
		return nss.User{}, nil
	}
	u, _, err := nss.ParseUser(c.User)
	return u, errs.Wrap(err, errs.KindOf(err), "%s=%s", keySpelling(c, "SchedUser"), c.User)
}

// userAbsent reports whether err means that a site's SlurmUser does not exist
// on this machine. This is normal on a machine without a Slurm daemon: no
// process on it runs as SlurmUser, and no file belongs to SlurmUser.
func userAbsent(c *conf.Cluster, err error) bool {
	return c.SlurmKeys && errs.KindOf(err) == errs.NotFound
}

// missingUserHint returns the hint for a configuration that can't be used
// because SlurmUser does not exist on this machine.
func missingUserHint(c *conf.Cluster) string {
	return "create the user " + c.User + " here with the uid that it has on the controller's machine, " +
		"or set that uid in " + c.Path
}

// existingUser returns the name of SchedUser. If a site's SlurmUser does not
// exist on this machine, existingUser returns "", which means root.
func existingUser(c *conf.Cluster) string {
	if _, err := schedUser(c); userAbsent(c, err) {
		return ""
	}
	return c.User
}

// keySpelling returns a key in the spelling that the configuration file uses.
func keySpelling(c *conf.Cluster, key string) string {
	if c.SlurmKeys {
		return strings.Replace(key, "Sched", "Slurm", 1)
	}
	return key
}
