package schema

import (
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// CSVWriter is an Encoder that writes the records of an answer as CSV (RFC 4180)
// with one header row. The records are the list that is the first member of the
// body. CSVWriter writes nothing of what follows them.
//
// A column has the path of a value in the record, such as "time.start". Values
// look as in JSON. A list is one cell, with commas between its elements or, if
// these are objects, between the values of their members. A text
// that a spreadsheet would take for a formula gets an apostrophe in front:
// otherwise the author of a text, such as a workload key, could run commands on
// the machine of an administrator who opens the file.
type CSVWriter struct {
	output
	columns []string
	index   map[string]int
	cells   []string // of the current record

	path   []string // the keys that lead to the next value
	depth  int      // of objects and arrays
	record int      // depth inside a record; 0 outside of the records
	ended  bool     // the records have ended
	key    string   // of the next value
	list   int      // depth inside a list of the record; 0 outside of lists
	column string   // that the list belongs to
}

// NewCSVWriter returns a CSVWriter that writes the records of an answer to w. The
// shape argument describes a record.
func NewCSVWriter(w io.Writer, record *Shape, v View) *CSVWriter {
	c := &CSVWriter{output: newOutput(w), columns: columns(record, v), index: map[string]int{}}
	for i, name := range c.columns {
		c.index[name] = i
	}
	c.cells = make([]string, len(c.columns))
	c.row(c.columns)
	return c
}

// columns returns the paths of the values in a record that v shows.
func columns(record *Shape, v View) (paths []string) {
	for i := range record.Fields {
		f := &record.Fields[i]
		switch {
		case !v.Shows(f.Name):
		case f.Shape.Kind == "object":
			for _, path := range columns(f.Shape, v.In(f.Name)) {
				paths = append(paths, f.Name+"."+path)
			}
		default:
			paths = append(paths, f.Name)
		}
	}
	return paths
}

func (c *CSVWriter) Key(name string) { c.key = name }

func (c *CSVWriter) BeginObject() {
	c.depth++
	switch {
	case c.record == 0 && c.depth == 3 && !c.ended:
		c.record = c.depth
		clear(c.cells)
	case c.record > 0:
		c.path = append(c.path, c.key)
	}
}

func (c *CSVWriter) EndObject() {
	switch {
	case c.record == c.depth && c.record > 0:
		c.record = 0
		c.row(c.cells)
	case c.record > 0:
		c.path = c.path[:len(c.path)-1]
	}
	c.depth--
}

func (c *CSVWriter) BeginArray() {
	c.depth++
	if c.record > 0 && c.list == 0 {
		c.list, c.column = c.depth, c.name()
	}
}

func (c *CSVWriter) EndArray() {
	if c.list == c.depth {
		c.list = 0
	}
	c.depth--
	if c.depth == 1 {
		c.ended = true
	}
}

// name returns the path of the next value.
func (c *CSVWriter) name() string {
	if len(c.path) == 0 {
		return c.key
	}
	return strings.Join(c.path, ".") + "." + c.key
}

// value stores a value of the current record.
func (c *CSVWriter) value(text string) {
	if c.record == 0 {
		return
	}
	name := c.column
	if c.list == 0 {
		name = c.name()
	}
	i, ok := c.index[name]
	switch {
	case !ok:
	case c.cells[i] == "":
		c.cells[i] = text
	default: // a further element of a list
		c.cells[i] += "," + text
	}
}

func (c *CSVWriter) String(s string) {
	if s != "" && strings.IndexByte("=+-@\t\r", s[0]) >= 0 {
		s = "'" + s
	}
	c.value(strings.ToValidUTF8(s, string(utf8.RuneError)))
}

func (c *CSVWriter) Int(n int64)   { c.value(strconv.FormatInt(n, 10)) }
func (c *CSVWriter) Uint(n uint64) { c.value(strconv.FormatUint(n, 10)) }
func (c *CSVWriter) Bool(b bool)   { c.value(strconv.FormatBool(b)) }
func (c *CSVWriter) Null()         {}

// Float writes f so that readers get the same double; NaN and infinity become 0,
// as in JSON.
func (c *CSVWriter) Float(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		f = 0
	}
	c.value(strconv.FormatFloat(f, 'g', -1, 64))
}

// row writes a row.
func (c *CSVWriter) row(cells []string) {
	for i, cell := range cells {
		if i > 0 {
			c.buf = append(c.buf, ',')
		}
		if !strings.ContainsAny(cell, ",\"\r\n") {
			c.buf = append(c.buf, cell...)
			continue
		}
		c.buf = append(c.buf, '"')
		c.buf = append(c.buf, strings.ReplaceAll(cell, `"`, `""`)...)
		c.buf = append(c.buf, '"')
	}
	if c.buf = append(c.buf, '\n'); len(c.buf) >= pieceSize {
		c.Flush()
	}
}
