package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"schedrestd/auth"
	"schedrestd/cli/credential"
	"schedrestd/cli/direct"
	"schedrestd/cli/rest"
	"schedrestd/cli/table"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
	"schedrestd/internal/release"
)

// The addresses at which commands look for a gateway if the user names none.
const (
	usersSocket = "/run/schedrestd-users/socket"
	defaultURL  = "http://127.0.0.1:6820" // slurmrestd's usual port
)

// A server is what a command sends its requests to: the gateway at a URL, or
// the daemons of a configuration, which is a file or is sent by the controllers
// in confServers. One of these fields is set.
type server struct {
	url, config, confServers string
	guessed                  bool // the user has named none
}

// server returns the server that the user has selected. The command line takes
// precedence over the environment, and an address over a configuration. If the
// user has selected none, it is the first of these: the gateway's socket for
// local users, if there is no token; the daemons of this machine's
// configuration, or of one that the controllers in SCHED_CONF_SERVER send, if
// there is a token; and the gateway at slurmrestd's usual port.
func (o *options) server(token string) (server, error) {
	config := ""
	if f := o.cmd.Flag("config"); f != nil {
		config = f.Value.String()
	}
	switch {
	case o.url != "" && config != "" && config != os.DevNull:
		return server{}, usageError("--url and --config exclude each other").
			WithHint("--url selects a gateway, and --config the daemons of a cluster")
	case o.url != "":
		return server{url: o.url}, nil
	case config != "" && config != os.DevNull:
		return server{config: config}, nil
	}
	url, err := conf.Env("SCHED_URL")
	if err != nil || url != "" {
		return server{url: url}, err
	}
	for _, name := range []string{"SCHED_URL", "SLURM_URL"} {
		if _, set := os.LookupEnv(name); set { // otherwise a command could be sent to another cluster than the user means
			return server{}, usageError("%s is set but empty", name).WithHint("unset %s, or set it to the address of a gateway", name)
		}
	}
	if config == "" {
		config, err = conf.Env("SCHED_CONF")
	}
	if err != nil || config != "" && config != os.DevNull {
		return server{config: config}, err
	}
	if _, err := os.Stat(usersSocket); err == nil && token == "" {
		return server{url: "unix:" + usersSocket}, nil
	}
	if path, err := conf.Find(""); err == nil && config == "" {
		return server{config: path}, nil
	}
	if servers, err := conf.Env("SCHED_CONF_SERVER"); err != nil || servers != "" && token != "" && config == "" {
		return server{confServers: servers}, err
	}
	return server{url: defaultURL, guessed: true}, nil
}

// A connection contains a client for the REST API and the name of the user.
type connection struct {
	*rest.Client
	user    string                           // "" if unknown
	cluster *direct.Cluster                  // nil with a gateway
	log     func(format string, args ...any) // prints a line if the user wants to see requests
	warn    func(format string, args ...any) // prints a warning

	waitNote sync.Once   // for noteWaits
	outage   atomic.Bool // the user has been warned that requests fail, and none has succeeded since
}

// noteOthers notes that the server has sent entries that the options of the
// command do not select. They were left out.
func (c *connection) noteOthers(n int) {
	if n > 0 {
		c.log("note: the server did not apply all options; schedctl left %d entries out", n)
	}
}

// logger returns a function that prints a line on standard error if the user
// wants to see requests.
func (o *options) logger() func(format string, args ...any) {
	var mu sync.Mutex // guards the writer
	return func(format string, args ...any) {
		if !o.verbose || o.quiet {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(o.cmd.ErrOrStderr(), printable.Text(fmt.Sprintf(format, args...)))
	}
}

// warner returns a function that prints a warning on standard error. On a
// terminal it replaces the line that shows the progress.
func (o *options) warner() func(format string, args ...any) {
	w, begin := o.cmd.ErrOrStderr(), "warning: "
	if table.TerminalOf(w).IsTerminal() {
		begin = "\r\x1b[K" + begin
	}
	return func(format string, args ...any) {
		if !o.quiet {
			fmt.Fprintln(w, begin+printable.Text(fmt.Sprintf(format, args...)))
		}
	}
}

// dial connects to the server with the user's token.
func (o *options) dial(ctx context.Context) (*connection, error) {
	if o.timeout <= 0 {
		return nil, usageError("--timeout %s: must be longer than 0", o.timeout)
	}
	cluster, err := o.selectedCluster()
	if err != nil {
		return nil, err
	}
	tokenFile := o.tokenFile
	if cluster != nil && tokenFile == "" {
		tokenFile = cluster.tokenFile
	}
	token, err := credential.Token(tokenFile)
	if err != nil {
		return nil, err
	}
	var s server
	if cluster != nil {
		s.url = cluster.url
	} else if s, err = o.server(token); err != nil {
		return nil, err
	}
	if s.url == "" {
		return o.dialDirect(ctx, s, token)
	}
	trusted, err := o.trustedUIDs()
	if err != nil {
		return nil, err
	}
	log := o.logger()
	client, err := rest.Dial(ctx, rest.Config{URL: s.url, Token: token, CACert: o.caCert, Timeout: o.answerTimeout(), ServerUsers: trusted,
		UserAgent: "schedctl/" + release.Version, Log: log})
	if err != nil {
		return nil, withDefaultHint(err, s)
	}
	return &connection{Client: client, user: credential.User(token, ""), log: log, warn: o.warner()}, nil
}

// answerTimeout returns the time limit until an answer begins, or 0 if the user
// has not set one.
func (o *options) answerTimeout() time.Duration {
	if !o.cmd.Flags().Changed("timeout") {
		return 0
	}
	return o.timeout
}

// withDefaultHint adds a hint to the error of a gateway that the user has not
// named and that can't be reached.
func withDefaultHint(err error, s server) error {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok || !s.guessed || e.Kind != errs.Unavailable {
		return err
	}
	with := *e
	return with.WithHint("set SCHED_URL to the address of a gateway, or SCHED_CONF to the configuration of a cluster; without both, %s is tried", s.url)
}

// dialDirect connects to the daemons of a configuration.
func (o *options) dialDirect(ctx context.Context, s server, token string) (*connection, error) {
	if o.caCert != "" || len(o.serverUsers) > 0 {
		return nil, usageError("--cacert and --server-user need the address of a gateway").WithHint("name it with --url or SCHED_URL")
	}
	warn := o.cmd.ErrOrStderr()
	if o.quiet {
		warn = io.Discard
	}
	var rules auth.Rules
	withRules := func(r auth.Rules) (string, error) { rules = r; return token, nil }
	open := func() (*direct.Cluster, error) { return direct.Open(s.config, withRules, warn) }
	if s.confServers != "" {
		open = func() (*direct.Cluster, error) { return direct.Fetch(ctx, s.confServers, token, withRules, warn) }
	}
	cluster, err := open()
	if err != nil {
		return nil, err
	}
	log := o.logger()
	client, err := rest.Dial(ctx, rest.Config{URL: printable.Text(cluster.Path), Direct: cluster.Dial, Token: token, Timeout: o.answerTimeout(),
		UserAgent: "schedctl/" + release.Version, Log: log})
	if err != nil {
		return nil, err
	}
	return &connection{Client: client, user: credential.User(token, rules.UserField), cluster: cluster, log: log, warn: o.warner()}, nil
}
