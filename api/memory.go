package api

import (
	"math"
	"strconv"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// mebibytes returns the type of an amount of memory in MiB. In a request, the
// amount may also be a string with a unit, such as "2G".
func mebibytes() schema.Type[model.Opt[uint64]] { return mebibyteType{} }

type mebibyteType struct{ wrapper[uint64] }

// Parser returns a function that parses a number, a wrapped number, or a
// string.
func (m mebibyteType) Parser(v schema.View) func(*schema.Report, *schema.Value, *model.Opt[uint64]) bool {
	number := m.wrapper.Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *model.Opt[uint64]) bool {
		if doc.Kind != schema.Text {
			return number(r, doc, into)
		}
		n, ok := parseMebibytes(doc.Text)
		if !ok {
			return r.Error(doc, "expected an amount of memory such as 512, 512M or 1G, got %q", schema.Shorten(doc.Text))
		}
		*into = model.Some(n)
		return true
	}
}

var memoryText = expression(`^(\d{1,19})([KMGT]?)B?$`)

// parseMebibytes parses an amount of memory as Slurm's commands do. An amount
// without a unit is in MiB. A fraction of a MiB is rounded up.
func parseMebibytes(s string) (uint64, bool) {
	m := memoryText().FindStringSubmatch(strings.ToUpper(s))
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseUint(m[1], 10, 63)
	if m[2] == "K" {
		return n/1024 + min(n%1024, 1), err == nil
	}
	shift := map[string]int{"": 0, "M": 0, "G": 10, "T": 20}[m[2]]
	return n << shift, err == nil && n <= math.MaxInt64>>shift
}
