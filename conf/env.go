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
// If both spellings are set to different values, Env returns an error, because
// choosing one of them could select another user's identity or file. The error
// shows neither value, because SCHED_JWT may be a token.
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

// DefaultPaths lists where the cluster's configuration may be if neither the
// command line nor the environment names it. The last path is for a machine
// without a configuration file of its own: slurmd or sackd fetches the file
// from the controller and stores it there.
var DefaultPaths = []string{"/etc/sched/sched.conf", "/etc/slurm/slurm.conf", "/run/slurm/conf/slurm.conf"}

// Find returns the path of the cluster's configuration: flag if it is not
// empty, otherwise the value of SCHED_CONF or SLURM_CONF, otherwise the first
// of DefaultPaths that exists.
func Find(flag string) (string, error) { return diskReader.Find(flag) }
