// Package daemon contains the code that the two bundled daemons, schedctld and
// scheddbd, share: command line, SchedUser, protection of the cluster's key,
// verification of tokens, listening, and serving until shutdown. Access control
// is implemented only here: a mistake in it would give attackers root's rights
// on the cluster, and two copies would diverge.
//
// The Serve function of a daemon performs these steps in this order:
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
	"schedrestd/errs"
	"schedrestd/guard"
)

// CloseOnExec marks all inherited descriptors close-on-exec. The shell or
// service manager that started the daemon may have left files of root open, and
// the processes of jobs would inherit these. So it must be called before the
// daemon starts any program.
func CloseOnExec() error {
	err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	return errs.Wrap(err, errs.Internal, "mark descriptors close-on-exec")
}

// Harden prepares this process for holding the cluster's key: other users can't
// read files that it creates, and can't trace or dump it.
func Harden() error {
	unix.Umask(0o077)
	return errs.Wrap(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0), errs.Internal, "disable tracing and core dumps")
}

// SchedUser returns the user that SchedUser= names, or root when name is empty.
func SchedUser(name string) (nss.User, error) {
	if name == "" {
		return nss.User{Name: "root"}, nil
	}
	u, _, err := nss.ParseUser(name)
	return u, errs.Wrap(err, errs.KindOf(err), "SchedUser=%s", name)
}

// CheckFiles returns an error if a user other than root and the given owners
// can change one of the configuration files. It checks this only if the process
// runs as root. The files determine what root does, which keys are trusted, and
// who SchedUser is. So a file can make its own owner SchedUser. A caller may
// pass SchedUser as an owner only if this gives that user no additional rights.
func CheckFiles(files []string, owners ...uint32) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return conf.CheckTrust(files, guard.Trust{Owners: append([]uint32{0}, owners...), PrivateGroup: nss.PrivateGroup})
}

// Super returns a function that reports whether a user may do everything at a
// daemon. These users are root, the scheduler's user, and the user of the
// daemon itself, who could stop it and read its files anyway.
func Super(schedUser uint32) func(uid uint32) bool {
	self := uint32(os.Geteuid())
	return func(uid uint32) bool { return uid == 0 || uid == schedUser || uid == self }
}
