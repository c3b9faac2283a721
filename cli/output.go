package cli

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"schedrestd/api"
	"schedrestd/cli/rest"
	"schedrestd/cli/table"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

// An outputRequest is the command output with its options.
type outputRequest struct {
	options
	file   rest.Output
	follow bool
}

func outputCommand() *cobra.Command {
	var o outputRequest
	cmd := &cobra.Command{
		Use:   "output ID[.STEP]",
		Short: "Print the output of a job",
		Long: `output prints the file with the output of a job, which a gateway reads as the job's user if
its administrator permits this. With --follow it goes on with what the job writes, until the
job has ended.

With --script it prints the job's batch script, which the controller keeps until the job has
ended, and some sites in accounting for longer.

On a terminal, control characters are escaped. In a file or a pipe the bytes are those of the
file.`,
		Example: "  schedctl output 12 --tail 20 --follow\n  schedctl output 12_3 --errors | less -R\n  schedctl output 12.0",
		Args:    cobra.MatchAll(atLeastOneJob, atMost(1, "name one job; each task of an array has an output of its own")),
	}
	o.connectFlags(cmd)
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "F", false, "print also what the job writes from now on, until it has ended")
	f.BoolVarP(&o.file.Errors, "errors", "e", false, "print the error output, if it is in a file of its own")
	f.Uint32VarP(&o.file.Tail, "tail", "n", 0, "begin with the last `LINES` lines, at most 100000; 0 for the whole file")
	f.BoolVar(&o.file.Script, "script", false, "print the batch script, instead of the output")
	f.StringVar(&o.file.Step, "step", "", "print the output of the step with this `NUMBER`, if accounting names its file")
	cmd.RegisterFlagCompletionFunc("step", cobra.NoFileCompletions)
	cmd.RegisterFlagCompletionFunc("tail", cobra.NoFileCompletions)
	cmd.ValidArgsFunction = o.completeJobs(&filter{all: true})
	return setRun(cmd, o.run)
}

func (o *outputRequest) run(cmd *cobra.Command, words []string) error {
	if err := o.parse(words[0]); err != nil {
		return err
	}
	c, err := o.dial(cmd.Context())
	if err != nil {
		return err
	}
	if !o.follow {
		return c.showOutput(cmd.Context(), o.file, cmd.OutOrStdout())
	}
	w, flush := outputWriter(cmd.OutOrStdout())
	return c.followOutput(cmd.Context(), o.file, w, flush)
}

// parse parses the name of a job or step. It returns an error if the options exclude
// each other.
func (o *outputRequest) parse(name string) error {
	job, step, hasStep := strings.Cut(name, ".")
	if hasStep && o.file.Step != "" {
		return usageError("%s names a step, and --step another one", name).WithHint("leave out --step")
	}
	o.file.Job, o.file.Step = job, cmp.Or(step, o.file.Step)
	if o.file.Script && (o.follow || o.file.Errors || o.file.Tail > 0 || o.file.Step != "") {
		return usageError("--script prints the whole batch script, and not the output of the job").WithHint("leave out --follow, --errors, --tail and --step")
	}
	if err := checkID(job); err != nil {
		return err
	}
	if o.file.Tail > api.MaxTail {
		return usageError("--tail: at most %d lines", api.MaxTail)
	}
	if _, err := strconv.ParseUint(o.file.Step, 10, 32); err != nil && o.file.Step != "" {
		return usageError("expected the number of a step, not %q", o.file.Step)
	}
	return nil
}

// outputWriter returns a Writer for the bytes of a file. On a terminal it escapes
// control characters, with which a job or its programs could act as the user. The
// flush function writes the rest.
func outputWriter(out io.Writer) (w io.Writer, flush func() error) {
	if !table.TerminalOf(out).IsTerminal() {
		return out, func() error { return nil }
	}
	safe := &table.Escaper{W: out}
	return safe, safe.Flush
}

// showOutput prints the output of a job as it is now, or its script.
func (c *connection) showOutput(ctx context.Context, file rest.Output, out io.Writer) error {
	if c.IsDirect() && !file.Script {
		return c.explainOutput(ctx, file, nil)
	}
	w, flush := outputWriter(out)
	err := c.Output(ctx, &file, w)
	if err = cmp.Or(err, flush()); file.Script {
		return err
	}
	return c.explainOutput(ctx, file, err)
}

// followOutput writes the output of a job to w until the job has ended, and calls
// flush.
func (c *connection) followOutput(ctx context.Context, file rest.Output, w io.Writer, flush func() error) error {
	if c.IsDirect() {
		return c.explainOutput(ctx, file, nil)
	}
	var failed error // to write, which is not tried again
	follower := &rest.OutputFollower{Output: file,
		Reset: func() { c.warn("the file is shorter or another one now; its beginning follows") },
		Write: func(text []byte) error { _, failed = w.Write(text); return failed }}
	c.noteEvents()
	err := c.repeat(ctx, new(rest.List), listSchedule, func() (rest.Meta, bool, error) {
		ended, err := follower.Follow(ctx, c.Client)
		if failed != nil {
			return rest.Meta{}, true, nil
		}
		return rest.Meta{Wait: time.Second}, ended, err
	})
	return c.explainOutput(ctx, file, cmp.Or(err, failed, flush()))
}

// explainOutput adds to the error of a server that does not read output where the
// output is. A server in this process has no error.
func (c *connection) explainOutput(ctx context.Context, file rest.Output, err error) error {
	switch {
	case c.IsDirect():
		err = errs.New(errs.Unsupported, "only a gateway reads the output of jobs")
	case errs.KindOf(err) != errs.Unsupported:
		return err
	}
	jobs, lookupErr := c.Job(ctx, file.Job)
	if lookupErr != nil {
		return lookupErr
	}
	e := &errs.Error{Kind: errs.Unsupported, Err: err, Hint: "an administrator can permit it with SCHEDRESTD_OUTPUT"}
	if c.IsDirect() {
		e.Hint = "select a gateway with --url or SCHED_URL"
	}
	if len(jobs) == 1 {
		path := cmp.Or(jobs[0].OutputPath, jobs[0].Output)
		if file.Errors {
			path = cmp.Or(jobs[0].ErrorPath, jobs[0].Error)
		}
		if path != "" {
			e.Hint = "on the cluster it is in the file " + printable.Text(path) + "; " + e.Hint
		}
	}
	return e
}

// followJob prints the output of the user's job with this id, and each of its
// states on standard error, until the job has ended. If the output can't be
// followed, it only warns, because the exit status is that of the job.
func (c *connection) followJob(cmd *cobra.Command, id string) error {
	out := cmd.OutOrStdout()
	w, flush := outputWriter(out)
	printed := &jobOutput{out: w}
	errOut := cmd.ErrOrStderr()
	if sameFile(out, errOut) {
		errOut = &afterOutput{errOut, printed}
	}
	states := &progress{id: id, w: errOut} // not a line that changes, between those of the job
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		err := c.followOutput(cmd.Context(), rest.Output{Job: id}, printed, flush)
		if err == nil || cmd.Context().Err() != nil {
			return
		}
		states.mu.Lock() // it writes to standard error, too
		defer states.mu.Unlock()
		c.warn("the output is not shown: %s", err)
		if hint := errs.HintOf(err); hint != "" {
			c.warn("%s", hint)
		}
	}()
	err := c.awaitJobs(cmd.Context(), []string{id}, &await{until: rest.UntilEnded, report: states.show})
	<-followed
	c.noteInterrupted(cmd.Context(), id)
	return err
}

// A jobOutput writes the output of a job to out. It knows whether the last line lacks
// its end.
type jobOutput struct {
	out io.Writer

	mu       sync.Mutex // guards out and openLine
	openLine bool
}

func (o *jobOutput) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.openLine = !bytes.HasSuffix(text, []byte("\n"))
	return o.out.Write(text)
}

// An afterOutput writes lines to the same file as a jobOutput, each on a line of its
// own.
type afterOutput struct {
	w      io.Writer
	output *jobOutput
}

func (a *afterOutput) Write(line []byte) (int, error) {
	a.output.mu.Lock()
	defer a.output.mu.Unlock()
	if a.output.openLine {
		a.output.openLine = false
		io.WriteString(a.w, "\n") // a later error is reported
	}
	return a.w.Write(line)
}

// sameFile reports whether a and b write to the same file, terminal or pipe.
func sameFile(a, b io.Writer) bool {
	fileA, ok := a.(*os.File)
	fileB, ok2 := b.(*os.File)
	if !ok || !ok2 {
		return a == b
	}
	infoA, err := fileA.Stat()
	infoB, err2 := fileB.Stat()
	return err == nil && err2 == nil && os.SameFile(infoA, infoB)
}
