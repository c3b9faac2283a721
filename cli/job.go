package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/cli/table"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

func jobCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "job ID...",
		Short: "Show jobs in detail",
		Long: `job shows the details of jobs, and for an array those of each task. If the controller no
longer has a job, it shows the record in accounting.`,
		Args: atLeastOneJob,
	}
	o.connectFlags(cmd)
	o.outputFlag(cmd)
	cmd.ValidArgsFunction = o.completeJobs(&filter{all: true})
	return setRun(cmd, func(cmd *cobra.Command, ids []string) error {
		c, ids, err := o.dialForJobs(cmd.Context(), ids)
		if err != nil {
			return err
		}
		out := cmd.OutOrStdout()
		d := o.document(out, "jobs")
		first := true
		var joined error
		for _, id := range ids {
			joined = joinErrors(joined, c.RawJob(cmd.Context(), id, nil, func(j *rest.Job, text json.RawMessage) error {
				if d != nil {
					return d.Add(text)
				}
				if !first {
					fmt.Fprintln(out)
				}
				first = false
				return printJob(out, j, table.TerminalOf(out).Style())
			}))
		}
		if d != nil {
			joined = joinErrors(joined, d.Close())
		}
		return joined
	})
}

// dialForJobs checks the ids of jobs, and connects to the server. It also returns
// the ids as expandIDs does.
func (o *options) dialForJobs(ctx context.Context, words []string) (*connection, []string, error) {
	ids, err := expandIDs(words)
	if err != nil {
		return nil, nil, err
	}
	c, err := o.dial(ctx)
	return c, ids, err
}

// checkID returns an error if id is not a valid job id.
func checkID(id string) error {
	if err := rest.CheckJobID(id); err != nil {
		return usageError("%s", err.Error()).WithHint("%s", errs.HintOf(err))
	}
	return nil
}

// joinErrors joins two errors. The result has the kind of the first error.
func joinErrors(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &errs.Error{Kind: errs.KindOf(a), Hint: errs.HintOf(a), Err: errors.Join(a, b)}
}

// printJob prints the fields of j that are set, one per line.
func printJob(w io.Writer, j *rest.Job, style table.Style) error {
	state := strings.Join(j.State, "+") + cancelledBy(j)
	if reason := reasonOf(j); reason != "" {
		state += " (" + reason + ")"
	}
	rows := []struct{ name, value string }{
		{"Job", j.Label()},
		{"Name", j.Name},
		{"User", j.User},
		{"Account", j.Account},
		{"Partition", j.Partition},
		{"QOS", j.QOS},
		{"State", state},
		{"Details", descriptionOf(j)},
		{"Outcome", outcome(j)},
		{"Submitted", formatTime(j.Submitted)},
		{"Started", formatTime(startOf(j))},
		{"Ended", formatTime(endOf(j))},
		{"Run time", formatDuration(j.Elapsed(time.Now()))},
		{"Time limit", formatLimit(j.TimeLimit)},
		{"Priority", numberText(j.Priority)},
		{"Nodes", numberText(j.NodeCount)},
		{"Node list", j.Nodes},
		{"CPUs", numberText(j.CPUs)},
		{"Tasks", numberText(j.Tasks)},
		{"Memory", formatJobMemory(j)},
		{"Resources", j.Resources},
		{"Dependency", j.Dependency},
		{"Comment", j.Comment},
		{"Directory", j.Directory},
		{"Command", j.Command},
		{"Output", cmp.Or(j.OutputPath, j.Output)},
		{"Errors", cmp.Or(j.ErrorPath, j.Error)},
	}
	for _, row := range rows {
		if row.value == "" {
			continue
		}
		value := printable.Text(row.value)
		if c := stateColor(j.State); row.name == "State" && style.Color && c != table.Plain {
			value = table.Paint(value, c)
		}
		if _, err := fmt.Fprintf(w, "%-11s %s\n", row.name+":", value); err != nil {
			return err
		}
	}
	return nil
}

func numberText(n rest.Number) string { return numberCell(n).Text }

func formatJobMemory(j *rest.Job) string {
	switch {
	case j.MemoryNode.Int() > 0:
		return formatMemory(j.MemoryNode.Int()) + " per node"
	case j.MemoryCPU.Int() > 0:
		return formatMemory(j.MemoryCPU.Int()) + " per CPU"
	}
	return ""
}

// successOutcome is the text for a job whose script succeeded.
const successOutcome = "exit code 0"

// filesFailed is the text for a job that ended before its script began. Slurm
// says only "RaisedSignal:53(Real-time signal 19)".
const filesFailed = "the file for input, output or errors, or its directory, can't be opened (0:53)"

// descriptionOf returns the controller's description of the state of j, or "" if
// the outcome is clearer.
func descriptionOf(j *rest.Job) string {
	if j.FilesFailed() {
		return ""
	}
	return j.Description
}

// outcome describes the exit code or the signal with which a job ended.
func outcome(j *rest.Job) string {
	if j.Active() {
		return ""
	}
	if j.FilesFailed() {
		return filesFailed
	}
	if signal := j.Exit.Signal.ID.Int(); signal > 0 {
		if name := j.Exit.Signal.Name; name != "" {
			return fmt.Sprintf("signal %d (%s)", signal, name)
		}
		return fmt.Sprintf("signal %d", signal)
	}
	return fmt.Sprintf("exit code %d", j.Exit.Code.Int())
}
