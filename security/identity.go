package security

import (
	"os"
	"slices"

	"schedrestd/internal/errs"
)

// Identity is the user and the groups of a worker.
type Identity struct {
	Name   string // its name in messages: a user name, or "uid 1234"
	UID    uint32
	GID    uint32
	Groups []uint32 // supplementary groups of the worker; none if the gateway started as root
}

// Account is an account whose privileges a worker must not have.
type Account struct {
	Name   string // its name in messages: "root", "SchedUser sched"
	UID    uint32
	Groups []uint32 // all its groups, including the primary group
}

// CheckIdentity returns an error if a worker would have the uid or a group of
// one of the accounts. Such a worker could read the cluster's key or signal the
// daemons, and an attacker who captures it would control the cluster.
func CheckIdentity(id Identity, accounts ...Account) error {
	for _, a := range accounts {
		if id.UID == a.UID {
			return errs.New(errs.Denied, "would serve as %s (uid %d)", a.Name, a.UID).
				WithHint("use -u and -g with a dedicated account, created by: useradd --system --no-create-home --shell /usr/sbin/nologin schedrestd; " + switchHint)
		}
		if slices.Contains(a.Groups, id.GID) {
			return errs.New(errs.Denied, "would serve with group %d, which is a group of %s", id.GID, a.Name).
				WithHint("use -g with a dedicated group, created by: groupadd --system schedrestd; " + switchHint)
		}
		for _, g := range id.Groups {
			if slices.Contains(a.Groups, g) {
				return errs.New(errs.Denied, "would serve with the supplementary group %d, which is a group of %s", g, a.Name).
					WithHint("start as a user who is not in it, or as root with -u and -g, which drops such groups; " + switchHint)
			}
		}
	}
	return nil
}

const switchHint = "with SCHEDRESTD_SECURITY=disable_user_check it starts anyway, and an attacker who captures a worker can act as that account"

// RefuseSetuid returns an error if a setuid or setgid bit gave this process
// another uid or gid.
func RefuseSetuid() error {
	if os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid() {
		return errs.New(errs.Denied, "refusing to start: this program is installed setuid or setgid").
			WithHint("run chmod ug-s on the program")
	}
	return nil
}
