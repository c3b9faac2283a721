package main

import (
	"io/fs"
	"log/slog"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// options is what the command line and the environment ask for.
type options struct {
	conf        string
	user, group string
	connections int
	threads     int
	verbose     int
	listen      []string
	socketMode  string // octal
	socketGroup string

	switches security.Switches
	names    string // SCHEDRESTD_NAMES
	daemon   bool   // SCHED_JWT=daemon
}

func (o *options) flags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVarP(&o.conf, "config", "f", "", "configuration of the cluster")
	f.StringVarP(&o.user, "user", "u", "", "serve as this user; root must say which")
	f.StringVarP(&o.group, "group", "g", "", "serve as this group (default: the user's own)")
	f.IntVar(&o.connections, "max-connections", 0, "connections handled at one time (default 124)")
	f.IntVarP(&o.threads, "threads", "t", 0, "threads of all workers together (default: one a CPU)")
	f.StringVar(&o.socketMode, "socket-mode", "", "mode of UNIX sockets (default: 0666 with tokens, else 0600)")
	f.StringVar(&o.socketGroup, "socket-group", "", "group of UNIX sockets (default: the serving group)")
	f.CountVarP(&o.verbose, "verbose", "v", "log more; up to six times")
	f.BoolP("version", "V", false, "print the version and exit")
}

// fromEnvironment adds what the environment says and the command line does not.
func (o *options) fromEnvironment() error {
	env := func(name string, use func(string) error) error {
		v, err := conf.Env(name)
		if err == nil && v != "" {
			err = use(v)
		}
		return err
	}
	return firstError(
		env("SCHEDRESTD_LISTEN", func(v string) error {
			if len(o.listen) == 0 {
				o.listen = strings.Split(v, ",")
			}
			return nil
		}),
		env("SCHEDRESTD_MAX_CONNECTIONS", func(v string) (err error) {
			if o.connections != 0 {
				return nil
			}
			if o.connections, err = strconv.Atoi(v); err != nil {
				return errs.New(errs.Invalid, "environment: SCHEDRESTD_MAX_CONNECTIONS=%s is not a number", v)
			}
			return nil
		}),
		env("SCHEDRESTD_SECURITY", func(v string) (err error) {
			o.switches, err = security.ParseSwitches(v)
			return err
		}),
		env("SCHEDRESTD_NAMES", func(v string) error {
			o.names = v
			return nil
		}),
		env("SCHED_JWT", func(v string) error {
			// A token here would be somebody's own, exported for the commands.
			if o.daemon = v == "daemon"; !o.daemon {
				return errs.New(errs.Invalid, "environment: SCHED_JWT is not \"daemon\"").
					WithHint("a token serves commands; for the gateway export SCHED_JWT=daemon")
			}
			return nil
		}),
	)
}

func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// mode is --socket-mode; 0 leaves it to privsep.
func (o *options) mode() (fs.FileMode, error) {
	if o.socketMode == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(o.socketMode, 8, 32)
	if err != nil || n == 0 || n > 0o777 {
		return 0, errs.New(errs.Invalid, "--socket-mode=%s is not a file mode", o.socketMode).
			WithHint("an octal number, as 0660")
	}
	return fs.FileMode(n), nil
}

// level is how much is logged: -v adds debugging.
func (o *options) level() slog.Level {
	if o.verbose > 0 {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// spelling is which names are served: SCHEDRESTD_NAMES, else both for a site that writes
// its configuration in Slurm's keys.
func (o *options) spelling(c *conf.Cluster) (ipc.Names, error) {
	switch o.names {
	case "sched":
		return ipc.NamesSched, nil
	case "slurm":
		return ipc.NamesSlurm, nil
	case "both":
		return ipc.NamesSched | ipc.NamesSlurm, nil
	case "":
		if c.SlurmKeys {
			return ipc.NamesSched | ipc.NamesSlurm, nil
		}
		return ipc.NamesSched, nil
	}
	return 0, errs.New(errs.Invalid, "environment: SCHEDRESTD_NAMES=%s", o.names).WithHint("allowed are sched, slurm, both")
}
