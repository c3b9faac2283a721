// Package cli contains the commands of schedctl, except token and demo. They use
// the REST API of schedrestd or slurmrestd. Without such a gateway they use the
// same API in this process.
//
// The subpackages do not depend on the commands. Package rest contains the HTTP
// client, package direct serves the API in this process, package script parses
// batch scripts, package table prints tables, and package credential finds the
// token.
//
// Commands that change jobs have one way to select them (change.go). Ids and
// options never select more jobs than each of them alone.
//
// Results go to standard output. Progress, warnings and errors go to standard
// error. All text from the server is escaped before it is printed.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"schedrestd/become/nss"
	"schedrestd/cli/rest"
	"schedrestd/cli/script"
	"schedrestd/cli/table"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
	"schedrestd/internal/typo"
)

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		jobsCommand(), jobCommand(), whyCommand(), historyCommand(), nodesCommand(), partitionsCommand(), submitCommand(), outputCommand(), waitCommand(), watchCommand(), topCommand(),
		cancelCommand(), holdCommand(), releaseCommand(), requeueCommand(), updateCommand(), drainCommand(), resumeCommand(), usageCommand(), seffCommand(), priorityCommand(), sharesCommand(), pingCommand(), showCommand(), clustersCommand(), mcpCommand(),
	}
}

// The type options contains the options that all commands share.
type options struct {
	cluster     string
	clusterFlag *pflag.Flag // the option --cluster; nil if the command has another one of this name
	url         string
	tokenFile   string
	caCert      string
	serverUsers []string
	timeout     time.Duration
	output      string
	cmd         *cobra.Command
	verbose     bool
	quiet       bool // only results and errors are printed
}

// connectFlags declares the options for the connection.
func (o *options) connectFlags(cmd *cobra.Command) {
	o.cmd = cmd
	f := cmd.Flags()
	f.StringVar(&o.url, "url", "", "address of the gateway: http://HOST:PORT, https://HOST or unix:/PATH (default: $SCHED_URL)")
	if f.Lookup("cluster") == nil { // usage selects records with this option
		f.StringVar(&o.cluster, "cluster", "", "send requests to the cluster with this `NAME` in ~/.config/sched/clusters or /etc/sched/clusters (default: $SCHED_CLUSTER)")
		o.clusterFlag = f.Lookup("cluster")
		cmd.RegisterFlagCompletionFunc("cluster", completeClusters)
	}
	f.StringVar(&o.tokenFile, "token-file", "", "read the token from `FILE` (default: the token in SCHED_JWT)")
	f.StringVar(&o.caCert, "cacert", "", "`FILE` of certificates to verify the server with, instead of the system's")
	f.StringSliceVar(&o.serverUsers, "server-user", nil,
		"also send the token to a gateway that runs as `USER` (default: root, system users and you)")
	f.DurationVar(&o.timeout, "timeout", rest.DefaultTimeout, "time limit until an answer begins")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print each request, and the status of its answer, on standard error")
	cmd.MarkFlagFilename("token-file")
	cmd.MarkFlagFilename("cacert")
	cmd.RegisterFlagCompletionFunc("url", cobra.NoFileCompletions)
	cmd.RegisterFlagCompletionFunc("server-user", cobra.NoFileCompletions)
}

// outputFlag declares -o, with the formats table, json and yaml, and others that
// the command has. It makes cmd check the format before it runs.
func (o *options) outputFlag(cmd *cobra.Command, others ...string) {
	formats := append([]string{"table", "json", "yaml"}, others...)
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", "`FORMAT` of the output: "+orList(formats))
	cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if slices.Contains(formats, o.output) {
			return nil
		}
		hint := "use " + orList(formats)
		if takesOptions(cmd) {
			hint += "; the file for the job's output is an option of sbatch, after --"
		}
		return WithStatus(usageError("--output %s: unknown format", printable.Text(o.output)).WithHint("%s", hint))
	}
}

// orList returns a list of words for people, such as "table, json or yaml".
func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// document returns the document to write. It returns nil if the command writes
// a table.
func (o *options) document(w io.Writer, name string) *table.Document {
	if o.output == "table" || o.output == "wide" {
		return nil
	}
	return table.NewDocument(w, name, o.output == "yaml")
}

// The type wanted contains the names of objects that the user has asked for.
type wanted struct {
	kind  kind
	names []string
	seen  map[string]bool // whether the server has listed the object, by name
}

func newWanted(word, hint string, names []string) *wanted {
	w := &wanted{kind{word: word, hint: hint}, names, map[string]bool{}}
	for _, name := range names {
		w.seen[name] = false
	}
	return w
}

// has reports whether the user wants the object with the given name, which the
// server has listed. If the user has given no names, all objects are wanted.
func (w *wanted) has(name string) bool {
	_, ok := w.seen[name]
	if ok {
		w.seen[name] = true
	}
	return ok || len(w.names) == 0
}

// check returns an error that lists the names that the server has not listed.
func (w *wanted) check() error {
	return unknownNames(&w.kind, slices.DeleteFunc(slices.Clone(w.names), func(name string) bool { return w.seen[name] }), nil)
}

// writeResult completes the document d or, if d is nil, writes the table t, unless
// it is empty because names are unknown: that error is the argument unknown.
func writeResult(out io.Writer, d *table.Document, t *table.Table, unknown error) (err error) {
	if d != nil {
		err = d.Close()
	} else if t.Len() > 0 || unknown == nil {
		err = t.Write(out, table.TerminalOf(out).Style())
	}
	return joinErrors(err, unknown)
}

// listQuery returns the parameters of a request for records that have one of the
// values in each list that is not empty.
func listQuery(conditions map[string][]string) url.Values {
	query := url.Values{}
	for name, values := range conditions {
		if len(values) > 0 {
			query.Set(name, strings.Join(values, ","))
		}
	}
	return query
}

// trustedUIDs returns the uids of the users that --server-user names. If that
// option is not given, it returns the uid of the user in SCHED_SERVER_USER.
func (o *options) trustedUIDs() (uids []uint32, err error) {
	names := o.serverUsers
	if len(names) == 0 {
		name, err := conf.Env("SCHED_SERVER_USER")
		if err != nil {
			return nil, err
		}
		if name != "" {
			names = []string{name}
		}
	}
	for _, name := range names {
		u, _, err := nss.ParseUser(name)
		if err != nil {
			return nil, errs.Wrap(err, errs.Malformed, "--server-user %s", printable.Text(name))
		}
		uids = append(uids, u.UID)
	}
	return uids, nil
}

// usageError returns an error for an invalid command line.
func usageError(format string, args ...any) *errs.Error {
	return errs.New(errs.Malformed, format, args...)
}

// Exit statuses of the commands.
const (
	statusFailed      = 1   // the server refused the request, or any other error
	statusUsage       = 2   // wrong options, arguments or #SBATCH lines
	statusUnavailable = 3   // the server can't be reached or does not answer
	statusDenied      = 4   // no token, an expired token, or no permission
	statusUnknown     = 5   // the job or node does not exist
	statusTimeout     = 124 // the time of wait is over, as with timeout(1)
	statusInterrupted = 130 // Ctrl-C
)

// ExitError is an error with the exit status of a command. If Err is nil, there
// is no message to print.
type ExitError struct {
	Status int
	Err    error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

// Unwrap returns the error to print.
func (e *ExitError) Unwrap() error { return e.Err }

// WithStatus adds the exit status to err, unless err is nil or has one.
func WithStatus(err error) error {
	if _, ok := errors.AsType[*ExitError](err); ok || err == nil {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return &ExitError{Status: statusInterrupted}
	}
	status := statusFailed
	switch errs.KindOf(err) {
	case errs.Malformed:
		status = statusUsage
	case errs.Unavailable, errs.Timeout:
		status = statusUnavailable
	case errs.Unauthenticated, errs.Denied:
		status = statusDenied
	case errs.NotFound:
		status = statusUnknown
	}
	return &ExitError{status, err}
}

// setRun makes cmd call run. It adds an exit status to errors that run returns
// and to errors in the command line.
func setRun(cmd *cobra.Command, run func(*cobra.Command, []string) error) *cobra.Command {
	args := cmd.Args
	cmd.Args = func(cmd *cobra.Command, words []string) error {
		err := args(cmd, words)
		if err == nil {
			return nil
		}
		hint := errs.HintOf(err)
		if hint == "" {
			hint = "see " + cmd.CommandPath() + " --help"
		}
		return WithStatus(usageError("%s: %s", cmd.Name(), err).WithHint("%s", hint))
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		hint := "see " + cmd.CommandPath() + " --help"
		if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
			name := e.GetSpecifiedName()
			if near := typo.Nearest(name, flagNames(cmd)); takesOptions(cmd) && script.IsOption(name) {
				hint = "options of sbatch are put after --: " + cmd.UseLine()
			} else if near != "" && len(name) > 1 {
				hint = "did you mean --" + near + "? See " + cmd.CommandPath() + " --help"
			}
		}
		text := err.Error()
		if e, ok := errors.AsType[*strconv.NumError](err); ok {
			text = strings.Replace(text, e.Error(), e.Err.Error(), 1) // without the name of the function
		}
		return WithStatus(usageError("%s: %s", cmd.Name(), text).WithHint("%s", hint))
	})
	cmd.RunE = func(cmd *cobra.Command, words []string) error { return WithStatus(run(cmd, words)) }
	return cmd
}

// takesOptions reports whether the arguments of cmd contain options of sbatch.
func takesOptions(cmd *cobra.Command) bool { return strings.Contains(cmd.Use, "-- SBATCH-OPTION") }

// flagNames returns the names of the options of cmd.
func flagNames(cmd *cobra.Command) (names []string) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// atLeastOneJob returns an error if words, the arguments of a command, are
// empty.
func atLeastOneJob(_ *cobra.Command, words []string) error {
	if len(words) == 0 {
		return usageError("no job is named")
	}
	return nil
}

// atMost returns a function that returns an error if a command has more than n
// arguments. If hint is "", the hint of the error names the command's help.
func atMost(n int, hint string) cobra.PositionalArgs {
	return func(_ *cobra.Command, words []string) error {
		if len(words) <= n {
			return nil
		}
		return usageError("unexpected argument %q", printable.Text(words[n])).WithHint("%s", hint)
	}
}
