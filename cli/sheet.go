package cli

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"slices"
	"strconv"

	"schedrestd/cli/table"
	"schedrestd/internal/errs"
)

// A sheetColumn is a column of a sheet: a field of the records.
type sheetColumn struct {
	table.Column
	field    string
	cell     func(record) table.Cell // nil for the value of the field
	optional bool                    // the table omits the column if it is empty
}

// A sheet prints records in the format that the user has chosen: as a table for
// people, as a document, or as CSV. A document contains all fields, and CSV the
// values of the columns as they are in the document. A column without a heading is
// only in CSV.
type sheet struct {
	columns []sheetColumn
	compare func(a, b record) int // order of the table's rows; nil for that of the records
	keep    func(record) bool     // reports whether a record is printed; nil for all

	out      io.Writer
	records  []record // of a table
	document *table.Document
	csv      *csv.Writer
	fields   []string // of CSV, each once
}

// newSheet returns a sheet whose document is a list with the given name.
func (o *options) newSheet(out io.Writer, name string, columns []sheetColumn) *sheet {
	s := &sheet{columns: columns, out: out}
	if o.output != "csv" {
		s.document = o.document(out, name)
		return s
	}
	s.csv = csv.NewWriter(out)
	for _, c := range columns {
		if !slices.Contains(s.fields, c.field) {
			s.fields = append(s.fields, c.field)
		}
	}
	s.csv.Write(s.fields) // close reports an error
	return s
}

// add adds an object of the REST API.
func (s *sheet) add(text json.RawMessage) error {
	r, err := recordOf(text)
	if err != nil {
		return errs.Wrap(err, errs.BadAnswer, "read the answer")
	}
	if s.keep != nil && !s.keep(r) {
		return nil
	}
	if s.document != nil {
		return s.document.Add(text)
	}
	if s.csv == nil {
		s.records = append(s.records, r)
		return nil
	}
	var values []string
	for _, field := range s.fields {
		values = append(values, r.get(field))
	}
	return s.csv.Write(values)
}

// close prints the table, or the rest of a document. It returns the argument
// unknown, the error for names that are unknown, and prints no empty table with it.
func (s *sheet) close(unknown error) error {
	if s.csv != nil {
		s.csv.Flush()
		return joinErrors(s.csv.Error(), unknown)
	}
	return writeResult(s.out, s.document, s.table(), unknown)
}

// table returns the table of the records.
func (s *sheet) table() *table.Table {
	if s.compare != nil {
		slices.SortStableFunc(s.records, s.compare)
	}
	shown := slices.DeleteFunc(slices.Clone(s.columns), func(c sheetColumn) bool {
		return c.Heading == "" || c.optional && !slices.ContainsFunc(s.records, func(r record) bool { return r.get(c.field) != "" })
	})
	var headings []table.Column
	for _, c := range shown {
		headings = append(headings, c.Column)
	}
	t := table.New(headings...)
	for _, r := range s.records {
		var cells []table.Cell
		for _, c := range shown {
			if c.cell != nil {
				cells = append(cells, c.cell(r))
			} else {
				cells = append(cells, textCell(r.get(c.field)))
			}
		}
		t.Add(cells...)
	}
	return t
}

// rounded returns the function for the cells of a field that is a number with
// this number of digits after the point.
func rounded(field string, digits int) func(record) table.Cell {
	return func(r record) table.Cell {
		text := r.get(field)
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			text = strconv.FormatFloat(n, 'f', digits, 64)
		}
		return textCell(text)
	}
}
