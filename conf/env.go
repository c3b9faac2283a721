package conf

import (
	"os"
	"strings"

	"schedrestd/internal/errs"
)

// Env returns the value of an environment variable that has two spellings. name
// is our spelling ("SCHED_CONF", "SCHEDRESTD_LISTEN"). The other spelling
// begins with SLURM instead of SCHED. An empty value counts as unset.
//
// If the two spellings have different values, Env returns an error, because the
// wrong value could identify another user or name another file. The error
// contains neither value, because SCHED_JWT may be a token.
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

// DefaultPaths lists the paths at which to look for the cluster's configuration
// if neither the command line nor the environment names a file. The last path
// is for machines that have no configuration file of their own. On such a
// machine, slurmd or sackd gets the file from the controller and stores it at
// this path.
var DefaultPaths = []string{"/etc/sched/sched.conf", "/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"}

// Find returns the path of the cluster's configuration. It returns flag, unless
// flag is empty. If flag is empty, it returns the value of SCHED_CONF or
// SLURM_CONF. If neither variable is set, it returns the first of DefaultPaths
// that exists.
func Find(flag string) (string, error) { return diskReader.Find(flag) }
