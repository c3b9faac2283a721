package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"schedrestd/errs"
)

func showCommand(dial connector) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show nodes or jobs",
		Long: `show prints a table with headings and one line for each node or job. With a name
it prints all fields of that node or job as name=value lines, named as in the REST API.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errs.New(errs.Invalid, "missing argument: node or job").
				WithHint("run schedctl show node [NAME], or schedctl show job [ID]")
		},
	}
	cmd.AddCommand(showNode(dial), showJob(dial))
	return cmd
}

// A column describes a column of a table. It contains the heading and the name
// of the field whose values are shown.
type column struct{ heading, field string }

// table prints records in columns.
type table struct {
	columns []column
	w       *tabwriter.Writer
}

func newTable(w io.Writer, columns ...column) *table {
	t := &table{columns, tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	var headings []string
	for _, c := range columns {
		headings = append(headings, c.heading)
	}
	t.row(headings)
	return t
}

// add prints the record r as a line. An empty value is printed as a dash, so
// that programs can split the line at blanks.
func (t *table) add(r record) {
	var cells []string
	for _, c := range t.columns {
		cell := strings.ReplaceAll(r.get(c.field), " ", "_")
		if cell == "" {
			cell = "-"
		}
		cells = append(cells, cell)
	}
	t.row(cells)
}

func (t *table) row(cells []string) { fmt.Fprintln(t.w, strings.Join(cells, "\t")) }

func (t *table) flush() error { return t.w.Flush() }

// print prints all fields of r.
func (r record) print(w io.Writer) error {
	for _, f := range r {
		if _, err := fmt.Fprintf(w, "%s=%s\n", f.name, f.value); err != nil {
			return err
		}
	}
	return nil
}
