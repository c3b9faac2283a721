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
	"strings"
	"time"

	"github.com/spf13/pflag"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/feature"
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

	Verbose       verbosity
	debug         level    // of the variables; -v precedes it
	debugFlags    []string // nil for those of the configuration
	Names         string   // SCHEDRESTD_NAMES
	JWT           string   // SCHED_JWT; it is printed only if it is "daemon"
	SackSocket    string
	JSON, YAML    *work.Layout // nil for those of the configuration
	WithoutEffect []string     // variables and words that have none
	auditSetting  string       // SCHEDRESTD_AUDIT_FAIL or SCHEDRESTD_AUDIT_SYNC as written
}

// AddFlags adds the options of the command line to f, and sets the defaults of
// the variables.
func (o *Options) AddFlags(f *pflag.FlagSet) {
	o.Setup.Admission = defaultAdmission()
	o.Setup.MaxWait, o.Setup.WatchInterval = time.Minute, time.Second
	o.Setup.Docs, o.Setup.Status = true, true
	f.SortFlags = false
	f.StringVarP(&o.Conf, "config", "f", "", "read the cluster's configuration from `FILE`")
	f.Var(serverList{&o.ConfServer}, "conf-server", "fetch the configuration from these `HOSTS`")
	f.StringVarP(&o.User, "user", "u", "", "serve as `USER`; required if started as root")
	f.StringVarP(&o.Group, "group", "g", "", "serve as `GROUP` [the user's own]")
	f.VarP(&o.Auth, "auth", "a", "authentication methods [all available]")
	f.VarP(&o.Parsers, "data-parser", "d", "API versions, such as v0.0.42+fast,latest [all]")
	f.VarP(&o.Content, "openapi", "s", "content plugins [all available]")
	f.VarP(number{&o.Run.Threads, 1, MaxThreads}, "threads", "t", "threads of all workers [one per CPU, at least 2]")
	f.Var(number{&o.Run.Connections, 1, ipc.MaxConnections}, "max-connections", "connections handled concurrently [124]")
	f.Var(number{&o.Run.PerSource, 0, ipc.MaxConnections}, "max-per-source", "connections of one client; 0 means no limit [0]")
	f.Var(number{&o.Run.Identities, 1, ipc.MaxConnections}, "max-identities", "concurrent users, with become_user [64]")
	f.Var((*size)(&o.Setup.Limits.Body), "max-body", "largest request body [50M]")
	f.StringVar(&o.SocketMode, "socket-mode", "", "`MODE` of UNIX sockets, octal [0666 or 0600]")
	f.StringVar(&o.SocketGroup, "socket-group", "", "`GROUP` of UNIX sockets [the serving group]")
	f.StringVar(&o.Metrics, "metrics", "", "serve metrics for Prometheus at `ADDRESS` [off]")
	f.BoolVar(&o.GenerateSpec, "generate-openapi-spec", false, "print the OpenAPI document and exit")
	f.BoolVar(&o.Check, "check", false, "read all settings and keys, print them and exit")
	f.BoolVar(&o.CheckConfinement, "check-confinement", false, "test the confinement, print a report and exit")
	f.VarP(&o.Verbose, "verbose", "v", "log more; -vv logs everything``")
	f.Lookup("verbose").NoOptDefVal = increment
	f.BoolP("version", "V", false, "print the version and exit")
	f.BoolP("help", "h", false, "print this help and exit")
}

// Read reads the arguments and the flags of a command line that has been parsed.
// Options that it does not set are set from the environment.
func (o *Options) Read(f *pflag.FlagSet, args []string) error {
	o.Listen = args
	o.Auth.setOrigin(f.Lookup("auth"))
	o.Parsers.setOrigin(f.Lookup("data-parser"))
	o.Content.setOrigin(f.Lookup("openapi"))
	if err := o.checkEmpty(f); err != nil {
		return err
	}
	return o.ReadEnvironment()
}

// checkEmpty refuses a flag with an empty value. Such a value probably comes
// from an unset variable in a script, and must not select the default.
func (o *Options) checkEmpty(f *pflag.FlagSet) (err error) {
	f.Visit(func(flag *pflag.Flag) {
		if flag.Value.String() == "" && err == nil {
			err = errs.New(errs.Invalid, "%s: empty value", flagName(flag))
		}
	})
	return err
}

// flagName returns a flag as it is typed on the command line.
func flagName(f *pflag.Flag) string {
	if f.Shorthand != "" {
		return "-" + f.Shorthand
	}
	return "--" + f.Name
}

// A NameList is a list of requested names. Its origin is the flag or the
// environment variable that set it.
type NameList struct {
	Origin string // "" if none was requested
	Value  string
}

// Set appends to the list, so that a flag may be repeated.
func (a *NameList) Set(v string) error {
	if a.Value != "" {
		v = a.Value + "," + v
	}
	a.Value = v
	return nil
}

func (a *NameList) String() string { return a.Value }

func (a *NameList) Type() string { return "LIST" }

// setOrigin records the flag as the origin of the list, if the flag was given.
func (a *NameList) setOrigin(f *pflag.Flag) {
	if f.Changed {
		a.Origin = flagName(f)
	}
}

// MaxThreads is the maximum number of threads. It is higher than the number of
// CPUs of any machine. It is also low enough that a worker can start, although
// each running thread uses memory.
const MaxThreads = 4096

// A number is a flag whose value must be an integer from min to max.
type number struct {
	to       *uint32
	min, max uint32
}

func (n number) Set(v string) error {
	i, err := strconv.ParseUint(v, 10, 31)
	if err != nil || uint32(i) < n.min || uint32(i) > n.max {
		return errs.New(errs.Invalid, "not a number from %d to %d", n.min, n.max)
	}
	*n.to = uint32(i)
	return nil
}

func (n number) String() string {
	if n.to == nil {
		return ""
	}
	return strconv.FormatUint(uint64(*n.to), 10)
}

func (number) Type() string { return "N" }

// A serverList is the value of --conf-server.
type serverList struct{ to *confserver.Servers }

func (l serverList) Set(v string) (err error) {
	*l.to, err = confserver.Parse(v)
	return err
}

func (l serverList) String() string {
	if l.to == nil || *l.to == nil {
		return ""
	}
	return l.to.String()
}

func (serverList) Type() string { return "SERVERS" }

// verbosity counts -v.
type verbosity int

const (
	increment    = "+1" // value of a -v without a number
	MaxVerbosity = 6
)

// Set increments the number, or sets it.
func (n *verbosity) Set(v string) error {
	if v == increment {
		*n++
		return nil
	}
	i, err := strconv.ParseUint(v, 10, 8)
	if err != nil || i > MaxVerbosity {
		return errs.New(errs.Invalid, "not a number from 0 to %d", MaxVerbosity)
	}
	*n = verbosity(i)
	return nil
}

func (n *verbosity) String() string { return strconv.Itoa(int(*n)) }

func (*verbosity) Type() string { return "count" }

// size is a number of bytes.
type size uint32

const maxSize = 1 << 30 // a worker may have several concurrently

// Set parses a number of bytes, with an optional suffix K, M or G.
func (s *size) Set(v string) error {
	digits, shift := v, 0
	for i, unit := range []string{"K", "M", "G"} {
		if d, ok := strings.CutSuffix(strings.ToUpper(v), unit); ok {
			digits, shift = d, 10*(i+1)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n == 0 || n > maxSize>>shift {
		return errs.New(errs.Invalid, "not a size from 1 to 1G, such as 8M")
	}
	*s = size(n << shift)
	return nil
}

func (s *size) String() string { return strconv.FormatUint(uint64(*s), 10) }

func (*size) Type() string { return "SIZE" }

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

func (o *Options) setConfServer(name, v string) (err error) {
	if o.FallbackServer, err = confserver.Parse(v); err != nil {
		return errs.New(errs.Invalid, "environment: %s: %v", name, err).WithHint("%s", errs.HintOf(err))
	}
	return nil
}

func (o *Options) setListen(name, v string) error {
	if len(o.Listen) > 0 {
		return nil
	}
	if o.Listen = splitList(v); len(o.Listen) == 0 {
		return invalid(name, v, " names no address")
	}
	return nil
}

// setStatuses sets the responses that the OpenAPI document lists for each
// operation.
func (o *Options) setStatuses(name, v string) (err error) {
	o.Setup.Statuses, err = feature.ParseStatuses("environment: "+name, v)
	return err
}
