package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/internal/errs"
)

const showHint = "run schedctl show node [NAME], or schedctl show job [ID]"

func showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show nodes or jobs with all their fields",
		Long: `show prints a table with headings and one line for each node or job. With a name
it prints all fields of that node or job as name=value lines, named as in the REST API.`,
		Args: atMost(0, showHint),
	}
	setRun(cmd, func(*cobra.Command, []string) error {
		return usageError("missing argument: node or job").WithHint(showHint)
	})
	cmd.AddCommand(showNode(), showJob())
	return cmd
}

func showNode() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "node [NAME]",
		Aliases: []string{"nodes"},
		Short:   "Show all nodes, or one node in detail",
		Args:    atMost(1, ""),
	}
	o.connectFlags(cmd)
	cmd.ValidArgsFunction = o.completeNodes
	return setRun(cmd, func(cmd *cobra.Command, args []string) error {
		c, err := o.dial(cmd.Context())
		if err != nil {
			return err
		}
		if len(args) == 1 {
			p := recordPrinter{w: cmd.OutOrStdout()}
			return c.Node(cmd.Context(), args[0], func(_ *rest.Node, text json.RawMessage) error { return p.print(text) })
		}
		t := newRecordTable(cmd.OutOrStdout(),
			recordColumn{"NAME", "name"},
			recordColumn{"STATE", "state"},
			recordColumn{"CPUS", "cpus"},
			recordColumn{"ALLOC", "alloc_cpus"},
			recordColumn{"MEMORY", "real_memory"},
			recordColumn{"FREE", "free_mem"},
			recordColumn{"REASON", "reason"},
		)
		_, err = c.Nodes(cmd.Context(), &rest.List{Fields: t.fields()}, func(_ *rest.Node, text json.RawMessage) error { return t.add(text) })
		return t.finish(err)
	})
}

func showJob() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "job [ID]",
		Aliases: []string{"jobs"},
		Short:   "Show all jobs, or one job in detail",
		Args:    atMost(1, ""),
	}
	o.connectFlags(cmd)
	cmd.ValidArgsFunction = o.completeJobs(&filter{all: true})
	return setRun(cmd, func(cmd *cobra.Command, ids []string) error {
		for _, id := range ids {
			if err := checkID(id); err != nil {
				return err
			}
		}
		c, err := o.dial(cmd.Context())
		if err != nil {
			return err
		}
		if len(ids) == 1 {
			p := recordPrinter{w: cmd.OutOrStdout()}
			return c.RawJob(cmd.Context(), ids[0], func(_ *rest.Job, text json.RawMessage) error { return p.print(text) })
		}
		t := newRecordTable(cmd.OutOrStdout(),
			recordColumn{"ID", "job_id"},
			recordColumn{"NAME", "name"},
			recordColumn{"USER", "user_name"},
			recordColumn{"STATE", "job_state"},
			recordColumn{"CPUS", "cpus"},
			recordColumn{"LIMIT", "time_limit"},
			recordColumn{"EXIT", "exit_code.return_code"},
			recordColumn{"REASON", "state_reason"},
		)
		_, err = c.RawJobs(cmd.Context(), &rest.List{Fields: t.fields()}, func(_ *rest.Job, text json.RawMessage) error { return t.add(text) })
		return t.finish(err)
	})
}

// A recordPrinter prints records, separated by empty lines.
type recordPrinter struct {
	w       io.Writer
	printed bool
}

func (p *recordPrinter) print(object json.RawMessage) error {
	r, err := recordOf(object)
	if err != nil {
		return errs.Wrap(err, errs.BadAnswer, "read the answer")
	}
	if p.printed {
		fmt.Fprintln(p.w) // another task of an array
	}
	p.printed = true
	return r.print(p.w)
}

// A recordColumn is a column of a recordTable. It has a heading and the name of
// the field whose values are shown.
type recordColumn struct{ heading, field string }

// A recordTable prints records in columns.
type recordTable struct {
	columns []recordColumn
	w       *tabwriter.Writer
}

func newRecordTable(w io.Writer, columns ...recordColumn) *recordTable {
	t := &recordTable{columns, tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	var headings []string
	for _, c := range columns {
		headings = append(headings, c.heading)
	}
	t.row(headings)
	return t
}

// fields returns the paths of the fields that the table shows.
func (t *recordTable) fields() (paths []string) {
	for _, c := range t.columns {
		paths = append(paths, c.field)
	}
	return paths
}

// add prints an object as a line. An empty value is printed as a dash, so that
// programs can split the line at blanks.
func (t *recordTable) add(object json.RawMessage) error {
	r, err := recordOf(object)
	if err != nil {
		return errs.Wrap(err, errs.BadAnswer, "read the answer")
	}
	var cells []string
	for _, c := range t.columns {
		cell := strings.ReplaceAll(r.get(c.field), " ", "_")
		if cell == "" {
			cell = "-"
		}
		cells = append(cells, cell)
	}
	t.row(cells)
	return nil
}

func (t *recordTable) row(cells []string) { fmt.Fprintln(t.w, strings.Join(cells, "\t")) }

// finish prints the table, unless the list could not be read.
func (t *recordTable) finish(err error) error {
	if err != nil {
		return err
	}
	return t.w.Flush()
}
