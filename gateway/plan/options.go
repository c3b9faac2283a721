package plan

import (
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/rpc/confserver"
)

// options holds the settings from the command line and the environment.
type options struct {
	host  host
	start ipc.ConfigSetup

	conf             string
	confServer       confserver.Servers // --conf-server
	user, group      string
	auth             nameList // -a
	parsers          nameList // -d
	content          nameList // -s
	connections      int
	perSource        int
	identities       int
	threads          int
	body             size
	verbose          verbosity
	listen           []string
	metrics          string // address
	socketMode       string // octal
	socketGroup      string
	generateSpec     bool // --generate-openapi-spec
	check            bool // --check
	checkConfinement bool // --check-confinement

	// Only the environment sets the fields below.
	switches          switches
	names             string             // SCHEDRESTD_NAMES
	log               string             // SCHEDRESTD_LOG, with the path of the socket
	origins           []string           // SCHEDRESTD_CORS_ORIGINS
	hosts             []string           // SCHEDRESTD_HOSTS
	deprecated        []work.Deprecation // SCHEDRESTD_DEPRECATED
	noDocs            bool               // SCHEDRESTD_DOCS
	noStatus          bool               // SCHEDRESTD_STATUS
	jwt               string             // SCHED_JWT; it is printed only if it is "daemon"
	sackSocket        string             // SCHED_SACK_SOCKET
	confCache         string             // SCHEDRESTD_CONF_CACHE
	confCA            string             // SCHEDRESTD_CONF_CA
	confTokenFile     string             // SCHEDRESTD_CONF_TOKEN
	debug             level              // SCHED_DEBUG, SCHEDRESTD_DEBUG, SCHEDRESTD_DEBUG_STDERR, SCHEDRESTD_DEBUG_SYSLOG
	withoutEffect     []string           // variables and words that have none
	answerMemory      size               // SCHEDRESTD_ANSWER_MEMORY
	maxAge            time.Duration      // SCHEDRESTD_MAX_AGE
	maxWait           time.Duration      // SCHEDRESTD_MAX_WAIT
	accountingTimeout time.Duration      // SCHEDRESTD_ACCOUNTING_TIMEOUT; 0 if it is not set
	watchInterval     time.Duration      // SCHEDRESTD_WATCH_INTERVAL
	audit             ipc.Audit          // SCHEDRESTD_AUDIT_LOG, SCHEDRESTD_AUDIT_FAIL, SCHEDRESTD_AUDIT_SYNC, SCHEDRESTD_IDEMPOTENCY_FILE
	auditSetting      string             // SCHEDRESTD_AUDIT_FAIL and SCHEDRESTD_AUDIT_SYNC as written
	debugFlags        []string           // SCHED_DEBUG_FLAGS; nil for those of the configuration
	json, yaml        *work.Layout       // nil for those of the configuration
	statuses          []string           // SCHEDRESTD_RESPONSE_STATUS_CODES
	admission         work.Admission

	fallbackServer confserver.Servers // SCHED_CONF_SERVER
	tlsNames       bool               // SCHEDRESTD_TLS_NAMES=check
	passUnknown    bool               // SCHEDRESTD_UNKNOWN_USERS=controller

	netns, controllerNetns string // SCHEDRESTD_NETNS, SCHEDRESTD_CONTROLLER_NETNS
}

// reader returns a reader of configuration files. The parent opens the files.
func (o *options) reader() conf.Reader { return conf.Reader{Files: o.host} }

func (o *options) addFlags(f *pflag.FlagSet) {
	o.admission = defaultAdmission()
	o.maxWait, o.watchInterval = time.Minute, time.Second
	f.SortFlags = false
	f.StringVarP(&o.conf, "config", "f", "", "read the cluster's configuration from `FILE`")
	f.Var(serverList{&o.confServer}, "conf-server", "fetch the configuration from these `HOSTS`")
	f.StringVarP(&o.user, "user", "u", "", "serve as `USER`; required if started as root")
	f.StringVarP(&o.group, "group", "g", "", "serve as `GROUP` [the user's own]")
	f.VarP(&o.auth, "auth", "a", "authentication methods [all available]")
	f.VarP(&o.parsers, "data-parser", "d", "API versions, such as v0.0.42+fast,latest [all]")
	f.VarP(&o.content, "openapi", "s", "content plugins [all available]")
	f.VarP(number{&o.threads, 1, maxThreads}, "threads", "t", "threads of all workers [one per CPU, at least 2]")
	f.Var(number{&o.connections, 1, ipc.MaxConnections}, "max-connections", "connections handled concurrently [124]")
	f.Var(number{&o.perSource, 0, ipc.MaxConnections}, "max-per-source", "connections of one client; 0 means no limit [0]")
	f.Var(number{&o.identities, 1, ipc.MaxConnections}, "max-identities", "concurrent users, with become_user [64]")
	f.Var(&o.body, "max-body", "largest request body [50M]")
	f.StringVar(&o.socketMode, "socket-mode", "", "`MODE` of UNIX sockets, octal [0666 or 0600]")
	f.StringVar(&o.socketGroup, "socket-group", "", "`GROUP` of UNIX sockets [the serving group]")
	f.StringVar(&o.metrics, "metrics", "", "serve metrics for Prometheus at `ADDRESS` [off]")
	f.BoolVar(&o.generateSpec, "generate-openapi-spec", false, "print the OpenAPI document and exit")
	f.BoolVar(&o.check, "check", false, "read all settings and keys, print them and exit")
	f.BoolVar(&o.checkConfinement, "check-confinement", false, "test the confinement, print a report and exit")
	f.VarP(&o.verbose, "verbose", "v", "log more; -vv logs everything``")
	f.Lookup("verbose").NoOptDefVal = increment
	f.BoolP("version", "V", false, "print the version and exit")
	f.BoolP("help", "h", false, "print this help and exit")
}

// checkEmpty refuses a flag with an empty value. Such a value probably comes
// from an unset variable in a script, and must not select the default.
func (o *options) checkEmpty(f *pflag.FlagSet) (err error) {
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

// A nameList is a list of requested names. Its origin is the flag or the
// environment variable that set it.
type nameList struct {
	origin string // "" if none was requested
	value  string
}

// Set appends to the list, so that a flag may be repeated.
func (a *nameList) Set(v string) error {
	if a.value != "" {
		v = a.value + "," + v
	}
	a.value = v
	return nil
}

func (a *nameList) String() string { return a.value }

func (a *nameList) Type() string { return "LIST" }

// setOrigin records the flag as the origin of the list, if the flag was given.
func (a *nameList) setOrigin(f *pflag.Flag) {
	if f.Changed {
		a.origin = flagName(f)
	}
}

// maxThreads is the maximum number of threads. It is higher than the number of
// CPUs of any machine. It is also low enough that a worker can start, although
// each running thread uses memory.
const maxThreads = 4096

// A number is a flag whose value must be an integer from min to max.
type number struct {
	to       *int
	min, max int
}

func (n number) Set(v string) error {
	i, err := strconv.ParseUint(v, 10, 31)
	if err != nil || int(i) < n.min || int(i) > n.max {
		return errs.New(errs.Invalid, "not a number from %d to %d", n.min, n.max)
	}
	*n.to = int(i)
	return nil
}

func (n number) String() string {
	if n.to == nil {
		return ""
	}
	return strconv.Itoa(*n.to)
}

func (number) Type() string { return "N" }

// verbosity counts -v.
type verbosity int

const (
	increment    = "+1" // value of a -v without a number
	maxVerbosity = 6
)

// Set increments the number, or sets it.
func (n *verbosity) Set(v string) error {
	if v == increment {
		*n++
		return nil
	}
	i, err := strconv.ParseUint(v, 10, 8)
	if err != nil || i > maxVerbosity {
		return errs.New(errs.Invalid, "not a number from 0 to %d", maxVerbosity)
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

// defaultSocketMode returns the mode of UNIX sockets if --socket-mode is not
// set. If clients may use tokens, every user may connect, because the token
// identifies the user. With become_user, every user may connect, because each
// user gets a worker of their own. Otherwise the only method is
// rest_auth/local, and the gateway serves only the user it runs as, so only
// that user may connect.
func (o *options) defaultSocketMode(tokens bool) fs.FileMode {
	if tokens || o.switches.BecomeUser {
		return 0o666
	}
	return 0o600
}

// parseSocketMode returns the mode that --socket-mode sets, or 0 if it is not
// set.
func (o *options) parseSocketMode() (fs.FileMode, error) {
	if o.socketMode == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(o.socketMode, 8, 32)
	if err != nil || n == 0 || n > 0o777 {
		return 0, errs.New(errs.Invalid, "--socket-mode=%s is not a file mode", o.socketMode).
			WithHint("use an octal number such as 0660")
	}
	return fs.FileMode(n), nil
}

// spelling returns the spellings in which the gateway serves names: Sched's,
// Slurm's or both. The variable SCHEDRESTD_NAMES selects them. If the variable
// is not set, a configuration with Slurm's keys selects both, and any other
// configuration selects only Sched's.
func (o *options) spelling(c *conf.Cluster) (work.Names, error) {
	switch o.names {
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
	return 0, errs.New(errs.Invalid, "environment: SCHEDRESTD_NAMES=%s is not a set of names", o.names).
		WithHint("allowed values: sched, slurm, both")
}
