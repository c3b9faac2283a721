// Package daemon is what the two shipped daemons, schedctld and scheddbd, do alike: be a
// program, find SchedUser, become fit to hold the cluster's key, judge tokens, listen,
// serve until told to end. What decides who may do what is here once, because a mistake
// in it is root on the cluster, and two copies drift apart.
//
// A daemon's Serve is these steps in this order:
//
//	user, err := daemon.SchedUser(…)        who administrates
//	err = daemon.Judge(…)                   nobody else wrote what root is to obey
//	err = daemon.Harden()                   nobody reads this process's memory
//	keys, err := daemon.ReadKeys(…)         how tokens are judged
//	listeners, err := daemon.Listen(…)      clients wait from here on instead of failing
//	…                                       open what is the daemon's own
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

// Isolate has nothing that this process inherited pass on to what it starts. Whoever started the
// daemon may have left files of root's open (a shell, a service manager); a job's user
// would find them in his own processes. It comes first in main.
func Isolate() error {
	err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	return errs.Wrap(err, errs.Internal, "keep inherited descriptors from what is started")
}

// Harden makes this process fit to hold the cluster's key: nobody else reads the files it makes,
// and it can't be traced or dumped.
func Harden() error {
	unix.Umask(0o077)
	return errs.Wrap(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0), errs.Internal, "switch off core dumps")
}

// SchedUser finds the user that SchedUser= names; none is root.
func SchedUser(name string) (nss.User, error) {
	if name == "" {
		return nss.User{Name: "root"}, nil
	}
	u, _, err := nss.ParseUser(name)
	return u, errs.Wrap(err, errs.KindOf(err), "SchedUser=%s", name)
}

// Judge refuses configuration files that others than root and owners can change, where root
// is to obey them: what they say is what root does, and whose key is believed. SchedUser
// is one of owners only where he gains nothing by it: the file itself says who that is.
func Judge(files []string, owners ...uint32) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return conf.Judge(files, guard.Trust{Owners: append([]uint32{0}, owners...), Private: nss.PrivateGroup})
}

// Super tells who may do everything at a daemon: root, the scheduler's user, and who the
// daemon itself is, who could stop it and read its files anyhow.
func Super(schedUser uint32) func(uid uint32) bool {
	self := uint32(os.Geteuid())
	return func(uid uint32) bool { return uid == 0 || uid == schedUser || uid == self }
}
