package conf

import (
	"os"
	"strings"

	"schedrestd/errs"
)

// Env is the value of an environment variable that has two spellings: name is
// ours ("SCHED_CONF", "SCHEDRESTD_LISTEN"), the other begins with SLURM. Set to
// nothing counts as not set.
//
// Both set and different is an error that shows neither value (SCHED_JWT is a
// token): to pick one could be to pick another person's identity or file.
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

// DefaultPaths are where the cluster's configuration is looked for when neither
// the command line nor the environment names it. The last is where slurmd and sackd keep what they
// fetch from the controller, on machines that have no file of their own.
var DefaultPaths = []string{"/etc/sched/sched.conf", "/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"}

// Find is the path of the cluster's configuration: flag when it is not empty, else
// SCHED_CONF or SLURM_CONF, else the first of DefaultPaths that exists.
func Find(flag string) (string, error) { return own.Find(flag) }
