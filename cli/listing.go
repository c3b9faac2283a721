package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"schedrestd/cli/table"
	"schedrestd/internal/printable"
)

// A column is a column of a table of objects of type T.
type column[T any] struct {
	table.Column
	name  string // for --columns and --sort
	extra bool   // shown only if --columns names it
	cell  func(T) table.Cell
}

// A listing prints objects of type T as a table. It has the options with which
// users choose the columns and the order of the rows.
type listing[T any] struct {
	columns []column[T]

	shown, sort []string
	noHeader    bool
}

// flags declares the options.
func (l *listing[T]) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringSliceVar(&l.shown, "columns", nil, "show these `COLUMNS`: "+strings.Join(l.names(), ", "))
	f.StringSliceVar(&l.sort, "sort", nil, "sort by these `COLUMNS`, in descending order after a minus sign (--sort=-cpus)")
	f.BoolVar(&l.noHeader, "no-header", false, "omit the headings")
	for _, name := range []string{"columns", "sort"} {
		cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(l.names(), cobra.ShellCompDirectiveNoFileComp))
	}
}

// names returns the names of all columns.
func (l *listing[T]) names() (names []string) {
	for _, c := range l.columns {
		names = append(names, c.name)
	}
	return names
}

// check returns an error if an option names an unknown column, or if the output
// is not a table. It is called before the first request.
func (l *listing[T]) check(output string) error {
	if output != "table" && (len(l.shown)+len(l.sort) > 0 || l.noHeader) {
		return usageError("--columns, --sort and --no-header have no effect on -o %s", output).WithHint("leave them out")
	}
	for option, names := range map[string][]string{"--columns": l.shown, "--sort": l.sort} {
		for _, name := range names {
			if option == "--sort" {
				name = strings.TrimPrefix(name, "-")
			}
			if l.index(name) < 0 {
				return usageError("%s %s: unknown column", option, printable.Text(name)).
					WithHint("columns are %s", strings.Join(l.names(), ", "))
			}
		}
	}
	return nil
}

func (l *listing[T]) index(name string) int {
	return slices.IndexFunc(l.columns, func(c column[T]) bool { return c.name == strings.ToLower(name) })
}

// table returns a table of the rows.
func (l *listing[T]) table(rows []T) *table.Table {
	slices.SortStableFunc(rows, l.compare)
	var shown []column[T]
	for _, name := range l.shown {
		c := l.columns[l.index(name)]
		c.Drop = 0 // the user wants to see it
		shown = append(shown, c)
	}
	if len(shown) == 0 {
		shown = slices.DeleteFunc(slices.Clone(l.columns), func(c column[T]) bool { return c.extra })
	}
	var headings []table.Column
	for _, c := range shown {
		headings = append(headings, c.Column)
	}
	t := table.New(headings...)
	t.NoHeader = l.noHeader
	for _, row := range rows {
		cells := make([]table.Cell, len(shown))
		for i, c := range shown {
			cells[i] = c.cell(row)
		}
		t.Add(cells...)
	}
	return t
}

// compare compares two rows by the columns that --sort names.
func (l *listing[T]) compare(a, b T) int {
	for _, name := range l.sort {
		name, descending := strings.CutPrefix(name, "-")
		c := l.columns[l.index(name)]
		if order := compareCells(c.cell(a), c.cell(b)); order != 0 {
			if descending {
				return -order
			}
			return order
		}
	}
	return 0
}

// compareCells compares numbers by their values, and texts in such a way that
// n2 comes before n10. Empty cells come first.
func compareCells(a, b table.Cell) int {
	switch {
	case a.Numeric && b.Numeric:
		return cmp.Compare(a.Number, b.Number)
	case a.Numeric != b.Numeric:
		if b.Numeric {
			return -1
		}
		return 1
	}
	return compareNatural(a.Text, b.Text)
}

// compareNatural compares two texts. It compares digits as numbers.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		na, nb := leadingDigits(a), leadingDigits(b)
		if na == 0 || nb == 0 {
			if order := cmp.Compare(a[0], b[0]); order != 0 {
				return order
			}
			a, b = a[1:], b[1:]
			continue
		}
		da, db := strings.TrimLeft(a[:na], "0"), strings.TrimLeft(b[:nb], "0")
		if order := cmp.Or(cmp.Compare(len(da), len(db)), cmp.Compare(da, db), cmp.Compare(na, nb)); order != 0 {
			return order
		}
		a, b = a[na:], b[nb:]
	}
	return cmp.Compare(len(a), len(b))
}

func leadingDigits(s string) int {
	return len(s) - len(strings.TrimLeft(s, "0123456789"))
}
