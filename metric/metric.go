// Package metric declares the metrics of the gateway.
//
// The possible values of every label are known in advance. So each combination
// of values has a number, its cell, and processes exchange these numbers
// instead of names. A compromised worker can add to cells, but can't invent a
// label. The memory for all cells is limited.
//
// A Family is a metric. A Table assigns cells to families, one family after
// another. Every table begins with the families in this package (Gateway). The
// dispatcher does not know any other families. Package metric/table adds
// families about requests, whose labels come from the API.
package metric

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// MaxCells is the maximum number of cells in a table.
const MaxCells = math.MaxUint16 + 1

// Kind says how the values of a family change.
type Kind uint8

// The kinds.
const (
	Counter Kind = iota
	Gauge
	Histogram // of durations
)

// Label is a label with all its possible values, or a set of labels with all
// possible combinations of their values.
type Label struct {
	Names  []string
	Values [][]string // each element has the same length as Names
}

// Labelled returns a label with the given name and values.
func Labelled(name string, values ...string) Label {
	l := Label{Names: []string{name}}
	for _, v := range values {
		l.Values = append(l.Values, []string{v})
	}
	return l
}

// Family is a metric with all combinations of its labels' values. For each
// combination, a histogram has several cells: one for each bucket, one for
// longer durations, and one for the sum in microseconds.
type Family struct {
	Name, Help string
	Kind       Kind
	Labels     []Label

	first int
}

// Buckets are the upper bounds of a histogram's buckets.
var Buckets = []time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
}

// depth returns the number of cells for each combination of label values.
func (f *Family) depth() int {
	if f.Kind == Histogram {
		return len(Buckets) + 2
	}
	return 1
}

// Cell returns the first cell for a combination of label values. Each argument
// is the index of one label's value.
func (f *Family) Cell(values ...int) int {
	if len(values) != len(f.Labels) {
		panic(fmt.Sprintf("%s with %d labels", f.Name, len(values)))
	}
	n := 0
	for i, v := range values {
		if v < 0 || v >= len(f.Labels[i].Values) {
			panic(fmt.Sprintf("%s: no value %d of %s", f.Name, v, f.Labels[i].Names))
		}
		n = n*len(f.Labels[i].Values) + v
	}
	return f.first + n*f.depth()
}

// Bucket returns the index of the bucket for a duration. If the duration
// exceeds all bounds, it returns len(Buckets).
func Bucket(d time.Duration) int {
	i, _ := slices.BinarySearch(Buckets, d)
	return i
}

// Names returns the names of the family's labels.
func (f *Family) Names() (list []string) {
	for _, l := range f.Labels {
		list = append(list, l.Names...)
	}
	return list
}

// Each calls the function fn for each combination of label values. The
// arguments of fn are the first cell, the number of cells, and the label
// values.
func (f *Family) Each(fn func(first, cells int, values []string)) {
	values := make([][]string, len(f.Labels))
	for i := range f.Cells() / f.depth() {
		rest := i
		for j := len(f.Labels) - 1; j >= 0; j-- {
			list := f.Labels[j].Values
			values[j] = list[rest%len(list)]
			rest /= len(list)
		}
		fn(f.first+i*f.depth(), f.depth(), slices.Concat(values...))
	}
}

// Cells returns the number of cells that the family has.
func (f *Family) Cells() int {
	n := f.depth()
	for _, l := range f.Labels {
		n *= len(l.Values)
	}
	return n
}

// Table is a list of families to which cells are assigned.
type Table struct {
	Families []*Family
	Cells    int
}

// Add adds families to the table and assigns cells to them. It panics if the
// table then has too many cells.
func (t *Table) Add(list ...*Family) {
	for _, f := range list {
		f.first = t.Cells
		t.Cells += f.Cells()
		t.Families = append(t.Families, f)
	}
	if t.Cells > MaxCells {
		panic(fmt.Sprintf("%d metric cells, more than %d", t.Cells, MaxCells))
	}
}
