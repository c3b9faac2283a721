// Package daemon contains the code that the two bundled daemons, schedctld and
// scheddbd, share. It parses the command line, determines SchedUser, protects
// the cluster's key, verifies tokens, listens, and serves until shutdown.
// Access control is implemented only here, because two copies of the code would
// diverge. A mistake in this code would give attackers root's rights on the
// cluster.
//
// The Serve function of each daemon performs these steps in this order:
//
//	user, err := daemon.SchedUser(…)        the administrative user
//	err = daemon.CheckFiles(…)              only trusted users can change the configuration
//	err = daemon.Harden()                   no user can read this process's memory
//	keys, err := daemon.ReadKeys(…)         how tokens are verified
//	listeners, err := daemon.Listen(…)      from here on clients wait instead of failing
//	…                                       open the daemon's own files
//	return daemon.Serve(ctx, server, listeners, …)
package daemon

import (
	"os"

	"golang.org/x/sys/unix"

	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/thread"
)

// Harden prepares this process to hold the cluster's key. It prevents other
// users from reading the files that the process creates, from tracing the
// process, and from dumping it.
func Harden() error {
	unix.Umask(0o077)
	thread.SetNice(thread.AcceptorNice)
	return errs.Wrap(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0), errs.Internal, "disable tracing and core dumps")
}

// SchedUser returns the user that SchedUser= names. It returns root when name
// is empty.
func SchedUser(name string) (nss.User, error) {
	if name == "" {
		return nss.User{Name: "root"}, nil
	}
	u, _, err := nss.ParseUser(name)
	return u, errs.Wrap(err, errs.KindOf(err), "SchedUser=%s", name)
}

// CheckFiles returns an error if a user other than root and the given owners
// can change one of the configuration files. It checks this only if the process
// runs as root.
//
// The files determine what root does, which keys are trusted, and who SchedUser
// is. So anyone who can change a file can become SchedUser. A caller may pass
// SchedUser as an owner only if this gives SchedUser no additional rights.
func CheckFiles(files []string, owners ...uint32) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return conf.CheckTrust(files, guard.Trust{Owners: append([]uint32{0}, owners...), PrivateGroup: nss.PrivateGroup})
}

// Super returns a function that reports whether a user has unrestricted access
// to a daemon. Root, the scheduler's user and the daemon's own user have such
// access. The daemon's own user could stop the daemon and read its files
// anyway.
func Super(schedUser uint32) func(uid uint32) bool {
	self := uint32(os.Geteuid())
	return func(uid uint32) bool { return uid == 0 || uid == schedUser || uid == self }
}
