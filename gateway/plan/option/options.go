// Package option reads what the administrator has set on the command line and in
// the environment. It checks each value by itself. Package plan combines them
// with the configuration.
//
// A new option is a row of AddFlags, a new variable a row of Options.variables, and
// a new word of SCHEDRESTD_SECURITY a row of Options.switches. The row names the
// field that takes the value.
package option

import (
	"io/fs"
	"strconv"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/rpc/confserver"
)

// Options holds the settings from the command line and the environment. What
// other processes receive without a change is stored where they read it, in Run and
// Setup. A zero in Run.Numbers and Setup.Limits is a value that was not set.
type Options struct {
	Run   ipc.Run
	Setup work.Setup

	Conf                       string             // -f
	ConfServer, FallbackServer confserver.Servers // --conf-server; SCHED_CONF_SERVER
	ConfCA, ConfCache          string             // paths; "" if they are not set
	ConfToken                  string             // path

	User, Group            string
	Auth, Parsers, Content NameList // -a, -d, -s
	Listen                 []string
	Metrics                string // address
	SocketMode             string // octal
	SocketGroup            string
	GenerateSpec           bool // --generate-openapi-spec
	Check                  bool // --check
	CheckConfinement       bool // --check-confinement

	Verbose           verbosity
	debug             level    // of the variables; -v precedes it
	debugFlags        []string // nil for those of the configuration
	Names             string   // SCHEDRESTD_NAMES
	JWT               string   // SCHED_JWT; it is printed only if it is "daemon"
	SackSocket        string
	SackKey, SackJWKS string       // paths
	TokenMode         string       // SCHEDRESTD_TOKEN_MODE; "" is bearer
	JSON, YAML        *work.Layout // nil for those of the configuration
	WithoutEffect     []string     // variables and words that have none
	auditSetting      string       // SCHEDRESTD_AUDIT_FAIL or SCHEDRESTD_AUDIT_SYNC as written
}

// DefaultSocketMode returns the mode of UNIX sockets if --socket-mode is not
// set. If clients may use tokens, every user may connect, because the token
// identifies the user. With become_user, every user may connect, because each
// user gets a worker of their own. Otherwise the only method is
// rest_auth/local, and the gateway serves only the user it runs as, so only
// that user may connect.
func (o *Options) DefaultSocketMode(tokens bool) fs.FileMode {
	if tokens || o.Run.Switches.BecomeUser {
		return 0o666
	}
	return 0o600
}

// ParseSocketMode returns the mode that --socket-mode sets, or 0 if it is not
// set.
func (o *Options) ParseSocketMode() (fs.FileMode, error) {
	if o.SocketMode == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(o.SocketMode, 8, 32)
	if err != nil || n == 0 || n > 0o777 {
		return 0, errs.New(errs.Invalid, "--socket-mode=%s is not a file mode", o.SocketMode).
			WithHint("use an octal number such as 0660")
	}
	return fs.FileMode(n), nil
}

// Spelling returns the spellings in which the gateway serves names: Sched's,
// Slurm's or both. The variable SCHEDRESTD_NAMES selects them. If the variable
// is not set, a configuration with Slurm's keys selects both, and any other
// configuration selects only Sched's.
func (o *Options) Spelling(c *conf.Cluster) (work.Names, error) {
	switch o.Names {
	case "sched":
		return work.NamesSched, nil
	case "slurm":
		return work.NamesSlurm, nil
	case "both":
		return work.NamesSched | work.NamesSlurm, nil
	case "":
		if c.SlurmKeys {
			return work.NamesSched | work.NamesSlurm, nil
		}
		return work.NamesSched, nil
	}
	return 0, errs.New(errs.Invalid, "environment: SCHEDRESTD_NAMES=%s is not a set of names", o.Names).
		WithHint("allowed values: sched, slurm, both")
}
