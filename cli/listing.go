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
	name   string // for --columns and --sort
	extra  bool   // shown only if --columns names it
	fields string // paths of the fields in the REST API that the cell needs, separated by commas
	cell   func(T) table.Cell
}

// A listing prints objects of type T as a table. It has the options with which
// users choose the columns and the order of the rows.
type listing[T any] struct {
	columns []column[T]

	shown, sort []string
	noHeader    bool
	wide        bool // all columns are shown, and nothing is shortened
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
	l.wide = output == "wide"
	switch {
	case l.wide && len(l.shown) > 0:
		return usageError("--columns and -o wide exclude each other").WithHint("-o wide shows all columns")
	case l.wide:
		l.shown = l.names()
	case output != "table" && (len(l.shown)+len(l.sort) > 0 || l.noHeader):
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

// shownColumns returns the columns that the user wants to see.
func (l *listing[T]) shownColumns() (shown []column[T]) {
	for _, name := range l.shown {
		c := l.columns[l.index(name)]
		c.Drop = 0 // the user wants to see it
		shown = append(shown, c)
	}
	if len(shown) == 0 {
		shown = slices.DeleteFunc(slices.Clone(l.columns), func(c column[T]) bool { return c.extra })
	}
	return shown
}

// fields returns the paths of the fields that the listing needs to show and sort
// its rows. The others argument contains paths that the caller needs.
func (l *listing[T]) fields(others ...string) []string {
	lists := others
	for _, c := range l.shownColumns() {
		lists = append(lists, c.fields)
	}
	for _, name := range l.sort {
		lists = append(lists, l.columns[l.index(strings.TrimPrefix(name, "-"))].fields)
	}
	return uniqueFields(lists)
}

// table returns a table of the rows.
func (l *listing[T]) table(rows []T) *table.Table {
	slices.SortStableFunc(rows, l.compare)
	shown := l.shownColumns()
	var headings []table.Column
	for _, c := range shown {
		headings = append(headings, c.Column)
	}
	t := table.New(headings...)
	t.NoHeader, t.Whole = l.noHeader, l.wide
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
