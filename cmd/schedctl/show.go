package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"schedrestd/errs"
)

func showCommand(to connector) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show nodes or jobs",
		Long: `show prints a table, a line for each node or job under a line of headings. With a name
it prints all there is to say about that one as name=value lines, with the names of the REST interface.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errs.New(errs.Invalid, "show what?").WithHint("schedctl show node [NAME], or schedctl show job [ID]")
		},
	}
	cmd.AddCommand(showNode(to), showJob(to))
	return cmd
}

// column is one column of a table: its heading, and the name of the field it shows.
type column struct{ heading, field string }

// table prints records under headings.
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

// add prints r; an empty value is a dash, so that columns can be told apart by blanks.
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

func (t *table) end() error { return t.w.Flush() }

// list prints r whole.
func (r record) list(w io.Writer) error {
	for _, f := range r {
		if _, err := fmt.Fprintf(w, "%s=%s\n", f.name, f.value); err != nil {
			return err
		}
	}
	return nil
}
