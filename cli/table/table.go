// Package table prints aligned tables to terminals and pipes.
//
// The contents of cells come from other users by way of the server. Every cell
// is escaped, so that its contents can't move the cursor or forge a line.
package table

import (
	"bufio"
	"io"
	"slices"
	"strings"
	"unicode"

	"schedrestd/internal/printable"
)

// A Color is the color of a cell, written as a parameter of the terminal's SGR
// control sequence. "" means no color.
type Color string

// The colors in use.
const (
	Plain  Color = ""
	Bold   Color = "1"
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
	Blue   Color = "34"
	Gray   Color = "90"
)

// Column is a column of a table.
type Column struct {
	Heading string
	Right   bool // align to the right
	Shrink  int  // minimum width on a narrow terminal; 0 if the column keeps its width
	Rank    int  // columns with a lower rank become narrower first
	Drop    int  // order in which columns are left out if the table is too wide even then; 0 for never
}

// Style describes how to print a table.
type Style struct {
	Width int  // width of the terminal; 0 for no limit
	Color bool // whether cells may have colors
}

// A Table collects all rows before it prints any of them, because the width of
// a column depends on all its cells.
type Table struct {
	columns []Column
	rows    [][]string
	colors  [][]Color

	NoHeader bool // the headings are not printed
	Whole    bool // nothing is shortened or left out, however narrow the terminal is
}

// New returns a table without rows.
func New(columns ...Column) *Table { return &Table{columns: columns} }

// Cell is a cell of a table. Cells with numbers also have the number, by which
// rows can be sorted.
type Cell struct {
	Text    string
	Color   Color
	Number  float64
	Numeric bool // Number is set
	Indent  int  // blanks before the text
}

// Add adds a row. An empty cell is printed as a dash, and each blank within a
// cell is printed as an underscore. This lets programs split the printed lines
// at blanks.
func (t *Table) Add(cells ...Cell) {
	row := make([]string, len(cells))
	var colors []Color
	for i, c := range cells {
		row[i] = strings.Repeat(" ", c.Indent) + cellText(c.Text)
		if c.Color != Plain && colors == nil {
			colors = make([]Color, len(cells))
		}
		if colors != nil {
			colors[i] = c.Color
		}
	}
	t.rows, t.colors = append(t.rows, row), append(t.colors, colors)
}

// Len returns the number of rows.
func (t *Table) Len() int { return len(t.rows) }

func cellText(s string) string {
	if s == "" {
		return "-"
	}
	return strings.ReplaceAll(printable.Text(s), " ", "_")
}

// gap separates columns.
const gap = "  "

// Write prints the table.
func (t *Table) Write(w io.Writer, style Style) error {
	if t.Whole {
		style.Width = 0
	}
	widths := t.widths(style.Width)
	out := bufio.NewWriter(w)
	headings := make([]string, len(t.columns))
	bold := make([]Color, len(t.columns))
	for i, c := range t.columns {
		headings[i], bold[i] = c.Heading, Bold
	}
	if !t.NoHeader {
		t.line(out, headings, bold, widths, style)
	}
	for i, row := range t.rows {
		t.line(out, row, t.colors[i], widths, style)
	}
	return out.Flush()
}

// omitted is the width of a column that is left out.
const omitted = -1

// widths returns the width of each column. If the table is wider than limit,
// the columns that may shrink become narrower, in the order of their ranks, and
// among those of the same rank the widest first. If this is not enough, columns
// are left out.
func (t *Table) widths(limit int) []int {
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		if !t.NoHeader {
			widths[i] = textWidth(c.Heading)
		}
		for _, row := range t.rows {
			widths[i] = max(widths[i], textWidth(row[i]))
		}
	}
	if limit <= 0 {
		return widths
	}
	t.omit(widths, limit)
	for excess := total(widths) - limit; excess > 0; excess-- {
		next := -1
		for i, c := range t.columns {
			if c.Shrink > 0 && widths[i] > c.Shrink && (next < 0 || c.Rank < t.columns[next].Rank ||
				c.Rank == t.columns[next].Rank && widths[i] > widths[next]) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		widths[next]--
	}
	return widths
}

// omit leaves out columns until the table fits into limit if all columns have
// their minimum widths. Then it puts back those for which there is room after
// all, because a column that was left out later may have been wider.
func (t *Table) omit(widths []int, limit int) {
	minimum := slices.Clone(widths)
	for i, c := range t.columns {
		if c.Shrink > 0 {
			minimum[i] = min(minimum[i], c.Shrink)
		}
	}
	var order []int // the columns that may be left out
	for i, c := range t.columns {
		if c.Drop > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return t.columns[a].Drop - t.columns[b].Drop })
	kept := slices.Clone(minimum)
	dropped := 0
	for ; total(kept) > limit && dropped < len(order); dropped++ {
		kept[order[dropped]] = omitted
	}
	for _, i := range slices.Backward(order[:dropped]) {
		if kept[i] = minimum[i]; total(kept) > limit {
			kept[i], widths[i] = omitted, omitted
		}
	}
}

// total returns the width of a table whose columns have the given widths.
func total(widths []int) int {
	sum, columns := 0, 0
	for _, w := range widths {
		if w != omitted {
			sum += w
			columns++
		}
	}
	return sum + len(gap)*max(0, columns-1)
}

func (t *Table) line(out *bufio.Writer, row []string, colors []Color, widths []int, style Style) {
	remaining := style.Width
	last := len(row) - 1
	for last > 0 && widths[last] == omitted {
		last--
	}
	for i, cell := range row {
		colWidth := widths[i]
		if colWidth == omitted {
			continue
		}
		if style.Width > 0 {
			if colWidth = min(colWidth, remaining); colWidth <= 0 {
				break
			}
			cell = Cut(cell, colWidth)
		}
		pad := strings.Repeat(" ", max(0, colWidth-textWidth(cell)))
		if t.columns[i].Right {
			out.WriteString(pad)
		}
		if style.Color && colors != nil && colors[i] != Plain {
			cell = Paint(cell, colors[i])
		}
		out.WriteString(cell)
		if i < last {
			if !t.columns[i].Right {
				out.WriteString(pad)
			}
			if remaining -= colWidth + len(gap); style.Width == 0 || remaining > 0 {
				out.WriteString(gap)
			}
		}
	}
	out.WriteByte('\n')
}

// Paint returns the text s in the color c. The text must be printable.
func Paint(s string, c Color) string { return "\x1b[" + string(c) + "m" + s + "\x1b[0m" }

// Cut returns s if s takes at most maxWidth terminal cells. Otherwise it
// returns the beginning of s, followed by an ellipsis.
func Cut(s string, maxWidth int) string {
	if textWidth(s) <= maxWidth {
		return s
	}
	var b strings.Builder
	used := 0
	for _, r := range s {
		if used += runeWidth(r); used > maxWidth-1 {
			break
		}
		b.WriteRune(r)
	}
	if maxWidth > 0 {
		b.WriteRune('…')
	}
	return b.String()
}

// textWidth returns the number of terminal cells that s takes.
func textWidth(s string) (n int) {
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// wideScripts lists the scripts whose characters take two cells.
var wideScripts = []*unicode.RangeTable{unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana, {
	R16: []unicode.Range16{{Lo: 0x3000, Hi: 0x303e, Stride: 1}, {Lo: 0xff01, Hi: 0xff60, Stride: 1}, {Lo: 0xffe0, Hi: 0xffe6, Stride: 1}},
	R32: []unicode.Range32{{Lo: 0x1f300, Hi: 0x1faff, Stride: 1}},
}}

// runeWidth returns the number of terminal cells that r takes.
func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case slices.ContainsFunc(wideScripts, func(t *unicode.RangeTable) bool { return unicode.Is(t, r) }):
		return 2
	}
	return 1
}
