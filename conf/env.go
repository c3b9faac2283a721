package conf

import (
	"os"
	"strings"

	"schedrestd/errs"
)

// Env returns the value of an environment variable that has two spellings. name
// is ours ("SCHED_CONF", "SCHEDRESTD_LISTEN"); the other begins with SLURM. An
// empty value counts as unset.
//
// If both are set and differ, Env returns an error that shows neither value
// (SCHED_JWT is a token), because choosing one could select another user's
// identity or file.
func Env(name string) (string, error) {
	value := os.Getenv(name)
	rest, ok := strings.CutPrefix(name, "SCHED")
	if !ok {
		return value, nil // ABORT_ON_FATAL has one spelling
	}
	other := os.Getenv("SLURM" + rest)
	switch {
	case value == "":
		return other, nil
	case other == "" || other == value:
		return value, nil
	}
	return "", errs.New(errs.Invalid, "environment: %s and SLURM%s are both set and differ", name, rest).
		WithHint("unset one of them")
}

// DefaultPaths lists the places of the cluster's configuration if neither the
// command line nor the environment names it. At the last path, slurmd and sackd
// store the file that they fetch from the controller, on machines without a
// file of their own.
var DefaultPaths = []string{"/etc/sched/sched.conf", "/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"}

// Find returns the path of the cluster's configuration. This is flag if it is
// not empty, otherwise SCHED_CONF or SLURM_CONF, otherwise the first of
// DefaultPaths that exists.
func Find(flag string) (string, error) { return own.Find(flag) }
