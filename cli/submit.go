package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/cli/script"
	"schedrestd/cli/table"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

func submitCommand() *cobra.Command {
	var o options
	var wait bool
	var key, wrap string
	cmd := &cobra.Command{
		Use:   "submit {FILE [ARG...] | --wrap COMMAND} [-- SBATCH-OPTION...]",
		Short: "Submit a batch script",
		Long: `submit submits a batch script and prints the id of the job. FILE is a script, or - for
standard input; --wrap makes a script of one command. The script gets the arguments ARG.
submit reads the #SBATCH lines before the first command as sbatch does. Options of sbatch
after -- take precedence. For an option that is not supported it fails and names the line;
schedctl(1) lists the supported options.

The job gets the environment of this command, without tokens, and the current directory;
--export and --chdir change this.

With --wait the command waits until the job has ended, shows its state on standard
error, and exits with the job's exit code. If a signal ended the job, this is 128 plus
its number; if the job was cancelled or failed in another way, it is 1.`,
		Example: "  schedctl submit job.sh\n  schedctl submit --wait job.sh -- --time=10 --partition=debug\n  schedctl submit --wrap 'hostname; date' -- -n 2",
		Args:    cobra.ArbitraryArgs,
	}
	o.connectFlags(cmd)
	o.outputFlag(cmd)
	cmd.Flags().BoolVarP(&wait, "wait", "W", false, "wait until the job has ended and exit with its exit code")
	cmd.Flags().StringVar(&wrap, "wrap", "", "submit a script that runs `COMMAND` with sh, instead of a file")
	cmd.RegisterFlagCompletionFunc("wrap", cobra.NoFileCompletions)
	cmd.Flags().StringVar(&key, "idempotency-key", "", "`KEY`: if you repeat the command with it, schedrestd submits no second job")
	cmd.RegisterFlagCompletionFunc("idempotency-key", cobra.NoFileCompletions)
	return setRun(cmd, func(cmd *cobra.Command, args []string) error {
		if err := o.checkOutput(); err != nil {
			return err
		}
		files, overrides := args, []string(nil)
		if dash := cmd.ArgsLenAtDash(); dash >= 0 {
			files, overrides = args[:dash], args[dash:]
		}
		switch {
		case wrap != "" && len(files) > 0:
			return usageError("submit: FILE and --wrap exclude each other").
				WithHint("put a command that has several words in quotes, and options of sbatch after --")
		case wrap == "" && len(files) == 0:
			return usageError("submit: no script is given").WithHint("name a file, - for standard input, or a command with --wrap")
		}
		in := io.Reader(strings.NewReader("#!/bin/sh\n" + wrap + "\n"))
		name := "wrap"
		if wrap == "" {
			name, in = files[0], nil
		}
		job, err := readScript(cmd, name, in, overrides)
		if err != nil {
			return err
		}
		if len(files) > 1 {
			job["argv"] = files // the first is the name of the script, as in sbatch
		}
		c, err := o.dial(cmd.Context())
		if err != nil {
			return err
		}
		submitted, err := c.Submit(cmd.Context(), job, key)
		for _, w := range submitted.Warnings {
			fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", w)
		}
		if err != nil {
			return withUncertainty(err)
		}
		if submitted.Message != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s\n", printable.Text(submitted.Message))
		}
		if err := o.printSubmitted(cmd.OutOrStdout(), submitted); err != nil || !wait {
			return err
		}
		id := strconv.FormatUint(uint64(submitted.ID), 10)
		p := newProgress(cmd.ErrOrStderr(), id)
		defer p.finish()
		return c.awaitJobs(cmd.Context(), []string{id}, &await{until: rest.UntilEnded, report: p.show})
	})
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
	return script.Parse(script.Source{Name: file, Text: text, Options: overrides, Directory: dir, Environment: os.Environ()})
}

// printSubmitted prints the id of the job, or the server's whole answer.
func (o *options) printSubmitted(w io.Writer, s rest.Submitted) (err error) {
	switch o.output {
	case "table":
		_, err = fmt.Fprintln(w, s.ID)
		return err
	case "json":
		text, err := json.MarshalIndent(s.JSON, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", table.EscapeJSON(text))
		return err
	}
	text, err := table.YAML(s.JSON)
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}
