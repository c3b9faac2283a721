package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/cli/script"
	"schedrestd/cli/table"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

// A submission is the command submit with its options.
type submission struct {
	options
	wait, follow, dryRun bool
	key                  string // Idempotency-Key
	wrap                 string // command of the script
}

func submitCommand() *cobra.Command {
	var s submission
	cmd := &cobra.Command{
		Use:   "submit [flags] {FILE [ARG...] | --wrap COMMAND} [-- SBATCH-OPTION...]",
		Short: "Submit a batch script",
		Long: `submit submits a batch script and prints the id of the job. FILE is a script, which
is looked up in the current directory and then in PATH, or - for standard input; --wrap makes a script of one command. The script gets the arguments ARG.
submit reads the #SBATCH lines before the first command as sbatch does. Options of sbatch
after -- take precedence. For an option that is not supported it fails and names the line;
schedctl(1) lists the supported options.

The job gets the environment of this command, without tokens, and the current directory;
--export and --chdir change this.

With --dry-run nothing is submitted. The controller checks the job, and the command
prints when and on which nodes it would start.

With --wait the command waits until the job has ended, shows its state on standard
error, and exits with the job's exit code. If a signal ended the job, this is 128 plus
its number; if the job was cancelled or failed in another way, it is 1.

--follow is like --wait, but the command prints the output of the job, as schedctl output
--follow does, and everything else on standard error, including the id.`,
		Example: "  schedctl submit job.sh\n  schedctl submit --wait job.sh -- --time=10 --partition=debug\n  schedctl submit --wrap 'hostname; date' -- -n 2",
		Args:    cobra.ArbitraryArgs,
	}
	s.connectFlags(cmd)
	s.outputFlag(cmd)
	cmd.Flags().BoolVarP(&s.wait, "wait", "W", false, "wait until the job has ended and exit with its exit code")
	cmd.Flags().BoolVarP(&s.follow, "follow", "F", false, "print the output of the job until it has ended, and exit with its exit code")
	cmd.Flags().BoolVar(&s.dryRun, "dry-run", false, "submit nothing, and print when and where the job would start")
	cmd.Flags().StringVar(&s.wrap, "wrap", "", "submit a script that runs `COMMAND` with sh, instead of a file")
	cmd.RegisterFlagCompletionFunc("wrap", cobra.NoFileCompletions)
	cmd.Flags().StringVar(&s.key, "idempotency-key", "", "`KEY`: if you repeat the command with it, schedrestd submits no second job")
	cmd.RegisterFlagCompletionFunc("idempotency-key", cobra.NoFileCompletions)
	return setRun(cmd, s.run)
}

// check returns an error if the options and the files exclude each other.
func (s *submission) check(files []string) error {
	switch {
	case s.wrap != "" && len(files) > 0:
		return usageError("submit: FILE and --wrap exclude each other").
			WithHint("put a command that has several words in quotes, and options of sbatch after --")
	case s.dryRun && (s.wait || s.follow || s.key != ""):
		return usageError("submit: --dry-run excludes --wait, --follow and --idempotency-key, which are about a job that is submitted")
	case s.follow && s.output != "table":
		return usageError("submit: --follow and --output exclude each other, because --follow prints the output of the job")
	case s.wrap == "" && len(files) == 0:
		return usageError("submit: no script is given").WithHint("name a file, - for standard input, or a command with --wrap")
	}
	return nil
}

func (s *submission) run(cmd *cobra.Command, args []string) error {
	files, overrides := args, []string(nil)
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		files, overrides = args[:dash], args[dash:]
	}
	if err := s.check(files); err != nil {
		return err
	}
	in := io.Reader(strings.NewReader("#!/bin/sh\n" + s.wrap + "\n"))
	name := "wrap"
	if s.wrap == "" {
		name, in = findScript(files[0]), nil
	}
	job, err := readScript(cmd, name, in, overrides)
	if err != nil {
		return err
	}
	if s.wrap == "" && (name != "-" || len(files) > 1) {
		job["argv"] = append([]string{name}, files[1:]...)
	}
	c, err := s.dial(cmd.Context())
	if err != nil {
		return err
	}
	if s.follow && c.IsDirect() {
		return errs.New(errs.Unsupported, "submit: --follow needs a gateway, which reads the output; nothing was submitted").
			WithHint("select one with --url or SCHED_URL, or use --wait")
	}
	if s.dryRun {
		estimate, err := c.Estimate(cmd.Context(), job)
		reportSubmission(cmd.ErrOrStderr(), estimate.Warnings, estimate.Message)
		if err != nil {
			return err
		}
		return s.printAnswer(cmd.OutOrStdout(), estimateText(&estimate), estimate.JSON)
	}
	submitted, err := c.Submit(cmd.Context(), job, s.key)
	reportSubmission(cmd.ErrOrStderr(), submitted.Warnings, submitted.Message)
	if err != nil {
		return withUncertainty(err)
	}
	id := strconv.FormatUint(uint64(submitted.ID), 10)
	if s.follow {
		return c.followJob(cmd, id)
	}
	if err := s.printAnswer(cmd.OutOrStdout(), id, submitted.JSON); err != nil {
		return errs.Wrap(err, errs.KindOf(err), "job %s was submitted; print its id", id)
	}
	if !s.wait {
		return nil
	}
	p := newProgress(cmd.ErrOrStderr(), id)
	err = c.awaitJobs(cmd.Context(), []string{id}, &await{until: rest.UntilEnded, report: p.show})
	p.finish()
	c.noteInterrupted(cmd.Context(), id)
	return err
}

// findScript returns the path of a script as sbatch looks it up, which the job's record
// shows: in the current directory and then in PATH, unless name begins with a dot or
// slash. If there is no such file, findScript returns name.
func findScript(name string) string {
	dir, err := os.Getwd()
	if err != nil || name == "-" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "/") {
		return name
	}
	for _, in := range append([]string{dir}, filepath.SplitList(os.Getenv("PATH"))...) {
		if in == "" {
			continue
		}
		if !strings.HasPrefix(in, "/") {
			in = dir + "/" + in
		}
		path := in + "/" + name
		if st, err := os.Stat(path); err == nil && !st.IsDir() {
			return path
		}
	}
	return name
}

// noteInterrupted says that Ctrl-C, if it has ended ctx, has not ended the job.
func (c *connection) noteInterrupted(ctx context.Context, id string) {
	if ctx.Err() != nil {
		c.warn("job %s goes on; schedctl cancel %s ends it", id, id)
	}
}

// withUncertainty returns err. If the job may have been submitted in spite of
// err, withUncertainty adds a message that says so.
func withUncertainty(err error) error {
	e, ok := errors.AsType[*errs.Error](err)
	if ok && e.Err == nil && e.Kind != errs.Timeout && e.Kind != errs.BadAnswer && e.Code != errs.OutcomeUnknown || !ok {
		return err
	}
	return &errs.Error{Kind: e.Kind, Err: e, Message: "the job may have been submitted",
		Hint: "look for it with schedctl jobs --me --all before you submit it again"}
}

// readScript reads a script from in, or from a file if in is nil. It returns
// the job that the script describes.
func readScript(cmd *cobra.Command, file string, in io.Reader, overrides []string) (script.Job, error) {
	switch {
	case in != nil:
	case file == "-":
		in = cmd.InOrStdin()
	default:
		f, err := os.Open(file)
		if err != nil {
			return nil, errs.Wrap(err, errs.Malformed, "read the script")
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, script.MaxSize+1))
	if err != nil {
		return nil, errs.Wrap(err, errs.Malformed, "read the script")
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, errs.Wrap(err, errs.Malformed, "find the current directory")
	}
	job, err := script.Parse(script.Source{Name: file, Text: text, Options: overrides, Directory: dir, Environment: os.Environ()})
	if err == nil {
		script.AddVariables(job, placeVariables(dir)...)
	}
	return job, err
}

// placeVariables returns the variables that say where a job is submitted. Like sbatch,
// it keeps a SLURM_UMASK that is set.
func placeVariables(dir string) []string {
	list := []string{"SLURM_SUBMIT_DIR=" + dir}
	if host, err := os.Hostname(); err == nil {
		list = append(list, "SLURM_SUBMIT_HOST="+host)
	}
	if _, set := os.LookupEnv("SLURM_UMASK"); !set {
		status, _ := os.ReadFile("/proc/self/status")
		if _, mask, ok := strings.Cut(string(status), "\nUmask:\t"); ok {
			mask, _, _ = strings.Cut(mask, "\n")
			list = append(list, "SLURM_UMASK="+mask)
		}
	}
	return list
}

// reportSubmission prints the warnings of a submission, and the message of the
// site's submit policy.
func reportSubmission(w io.Writer, warnings []string, message string) {
	for _, text := range warnings {
		fmt.Fprintf(w, "warning: %s\n", text)
	}
	if message != "" {
		fmt.Fprintf(w, "%s\n", printable.Text(message))
	}
}

// estimateText says when and where a job would start.
func estimateText(e *rest.Estimate) string {
	where := fmt.Sprintf("on %d CPUs of %s in the partition %s", e.CPUs, printable.Text(e.Nodes), printable.Text(e.Partition))
	text := "would start at an unknown time, " + where
	if e.Start.Set {
		text = "would start at " + formatTime(e.Start) + ", " + where
	}
	if len(e.Preempted) > 0 {
		text += fmt.Sprintf("; would end or suspend the jobs %s", strings.Trim(fmt.Sprint(e.Preempted), "[]"))
	}
	return text
}

// printAnswer prints the text, or the server's whole answer.
func (o *options) printAnswer(w io.Writer, text string, answer json.RawMessage) (err error) {
	switch o.output {
	case "table":
		_, err = fmt.Fprintln(w, text)
		return err
	case "json":
		text, err := json.MarshalIndent(answer, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", table.EscapeJSON(text))
		return err
	}
	yaml, err := table.YAML(answer)
	if err == nil {
		_, err = w.Write(yaml)
	}
	return err
}
