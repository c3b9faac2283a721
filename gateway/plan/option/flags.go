package option

import (
	"time"

	"github.com/spf13/pflag"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

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
	o.Auth.setOrigin(f.Lookup("auth"))
	o.Parsers.setOrigin(f.Lookup("data-parser"))
	o.Content.setOrigin(f.Lookup("openapi"))
	if err := o.checkEmpty(f); err != nil {
		return err
	}
	if err := o.listenOn(args); err != nil {
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
