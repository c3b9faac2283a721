// Package exposition writes metrics in the text format of Prometheus, version
// 0.0.4:
//
//	w := exposition.NewWriter(out)
//	w.Family("slurm_nodes_idle", exposition.Gauge, "Nodes that are idle.")
//	w.Sample("slurm_nodes_idle", 12)
//	err := w.Flush()
//
// After a call to Family, all samples of that family must be written before the
// next call to Family. The package has only a small buffer, so its memory does
// not depend on the length of the output.
//
// Workers use this package. The exporter uses Prometheus's own library, which
// would add 2.6 MB to each worker.
package exposition

import (
	"bufio"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Media is the media type of a Writer's output.
const Media = "text/plain; version=0.0.4; charset=utf-8"

// Kind is the type of a family.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Writer writes families of metrics.
type Writer struct {
	w    *bufio.Writer
	line []byte
}

// NewWriter returns a Writer that writes to w in pieces of 16 KiB.
func NewWriter(w io.Writer) *Writer { return &Writer{w: bufio.NewWriterSize(w, 16<<10)} }

// Family begins a family. All samples up to the next call to Family belong to
// it.
func (w *Writer) Family(name string, kind Kind, help string) {
	w.line = append(w.line[:0], "# HELP "...)
	w.line = append(w.line, name...)
	w.line = append(w.line, ' ')
	w.line = append(w.line, helpEscapes.Replace(help)...)
	w.line = append(w.line, "\n# TYPE "...)
	w.line = append(w.line, name...)
	w.line = append(w.line, ' ')
	w.line = append(w.line, kind...)
	w.line = append(w.line, '\n')
	_, _ = w.w.Write(w.line) // Flush returns the error
}

// Sample writes a sample. The labels argument contains the name of the first
// label, its value, the name of the second label, and so on.
func (w *Writer) Sample(name string, value float64, labels ...string) {
	w.line = append(w.line[:0], name...)
	for i := 0; i+1 < len(labels); i += 2 {
		mark := byte(',')
		if i == 0 {
			mark = '{'
		}
		w.line = append(append(w.line, mark), labels[i]...)
		w.line = append(append(w.line, '=', '"'), labelEscapes.Replace(Text(labels[i+1]))...)
		w.line = append(w.line, '"')
	}
	if len(labels) > 1 {
		w.line = append(w.line, '}')
	}
	w.line = append(appendNumber(append(w.line, ' '), value), '\n')
	_, _ = w.w.Write(w.line)
}

// Flush writes the buffered text. It returns the first error that occurred in
// any write.
func (w *Writer) Flush() error { return w.w.Flush() }

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// Text returns s as the value of a label, before escaping. It replaces invalid
// UTF-8 and control characters with U+FFFD, because some parsers stop at such
// bytes. So names that differ only in these characters become equal.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || unicode.IsControl(r) && r != '\n' {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// appendNumber appends the value of a sample. It writes whole numbers below
// 1<<53 without an exponent.
func appendNumber(b []byte, v float64) []byte {
	switch {
	case math.IsInf(v, 0) || math.IsNaN(v):
		s := strconv.FormatFloat(v, 'g', -1, 64)
		return append(b, s...)
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}
