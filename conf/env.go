package conf

import (
	"os"
	"strings"

	"schedrestd/errs"
)

// Env returns the value of an environment variable that has two spellings. name
// is our spelling ("SCHED_CONF", "SCHEDRESTD_LISTEN"). The other spelling
// begins with SLURM. An empty value counts as unset.
//
// If the two spellings have different values, Env returns an error, because the
// wrong one could name another user's identity or file. The error contains
// neither value, because SCHED_JWT may be a token.
func Env(name string) (string, error) {
	value := os.Getenv(name)
	suffix, ok := strings.CutPrefix(name, "SCHED")
	if !ok {
		return value, nil // ABORT_ON_FATAL has one spelling
	}
	slurmValue := os.Getenv("SLURM" + suffix)
	switch {
	case value == "":
		return slurmValue, nil
	case slurmValue == "" || slurmValue == value:
		return value, nil
	}
	return "", errs.New(errs.Invalid, "environment: %s and SLURM%s are both set and differ", name, suffix).
		WithHint("unset one of them")
}

// DefaultPaths lists the paths of the cluster's configuration that are tried if
// neither the command line nor the environment names a file. The last path is
// for a machine without a configuration file of its own, on which slurmd or
// sackd stores the file that it gets from the controller.
var DefaultPaths = []string{"/etc/sched/sched.conf", "/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"}

// Find returns the path of the cluster's configuration. This is the argument
// flag, unless it is empty. Otherwise it is the value of SCHED_CONF or
// SLURM_CONF, or the first of DefaultPaths that exists.
func Find(flag string) (string, error) { return diskReader.Find(flag) }
