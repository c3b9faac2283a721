package slurm

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// fieldTable lists the fields of answers that may differ, and changeTable the
// effects of changes that may differ.
const (
	fieldTable  = "testdata/differences/fields.md"
	changeTable = "testdata/differences/changes.md"
)

// exceptions are the rows of fieldTable.
type exceptions []*exception

// exception is a row of fieldTable. It names fields in which the answers of the
// two gateways may differ.
type exception struct {
	line     int
	releases string // "all", or several separated by commas
	versions string
	path     *regexp.Regexp // path without the version
	field    *regexp.Regexp
	kind     string
	needed   bool
}

// kinds are the kinds of differences that a row may permit.
var kinds = []string{
	"value", // another value of the same type
	"type",  // another type
	"theirs",
	"ours", // "theirs" or "ours": only that gateway's answer has the field
	"moves",
	"denied", // the daemon denies the request, and the gateway answers 403
}

// tableRow is a row of a table in Markdown.
type tableRow struct {
	line  int
	cells []string
}

// readTable reads the rows of the only table in a file. Each row must have the
// given number of cells, none of them empty.
func readTable(t *testing.T, file string, cells int) (rows []tableRow) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| release") || strings.HasPrefix(line, "| ---") {
			continue
		}
		row := tableRow{i + 1, strings.Split(strings.Trim(line, "| "), " | ")}
		if len(row.cells) != cells || slices.ContainsFunc(row.cells, func(cell string) bool { return strings.TrimSpace(cell) == "" }) {
			t.Fatalf("%s:%d: not %d cells: %s", file, row.line, cells, line)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no table", file)
	}
	return rows
}

// readExceptions reads fieldTable.
func readExceptions(t *testing.T) (list exceptions) {
	t.Helper()
	for _, row := range readTable(t, fieldTable, 6) {
		e := &exception{line: row.line, releases: row.cells[0], versions: row.cells[1], kind: row.cells[4],
			path: pattern(row.cells[2], "/"), field: pattern(row.cells[3], ".")}
		if !slices.Contains(kinds, e.kind) {
			t.Fatalf("%s:%d: no such kind of difference: %s", fieldTable, e.line, e.kind)
		}
		list = append(list, e)
	}
	return list
}

// pattern returns the regular expression for a name in backquotes. The
// character separator separates the parts of the name. In the name, * stands
// for any text within one part, and ** stands for any text.
func pattern(cell, separator string) *regexp.Regexp {
	s := regexp.QuoteMeta(strings.Trim(cell, "`"))
	s = strings.ReplaceAll(s, `\*\*`, `.*`)
	s = strings.ReplaceAll(s, `\*`, `[^`+separator+`]*`)
	return regexp.MustCompile("^" + s + "$")
}

func listHas(list, name string) bool {
	return list == "all" || slices.Contains(strings.Split(list, ", "), name)
}

// difference is a field that differs.
type difference struct {
	field              string // such as jobs[].name
	kind               string
	reference, gateway any
}

func (d difference) String() string {
	cut := func(v any) string {
		s := fmt.Sprintf("%#v", v)
		if len(s) > 150 {
			s = s[:150] + "…"
		}
		return s
	}
	switch d.kind {
	case "theirs":
		return fmt.Sprintf("%s: only theirs, %s", d.field, cut(d.reference))
	case "ours":
		return fmt.Sprintf("%s: only ours, %s", d.field, cut(d.gateway))
	}
	return fmt.Sprintf("%s: %s: theirs %s, ours %s", d.field, d.kind, cut(d.reference), cut(d.gateway))
}

// allowed reports whether there is a row for the difference.
func (list exceptions) allowed(release, version, path string, d difference) bool {
	for _, e := range list {
		if !listHas(e.releases, release) || !listHas(e.versions, version) || !e.path.MatchString(path) || !e.field.MatchString(d.field) {
			continue
		}
		// "moves" is for fields that change constantly. It permits a different
		// value of the same type, and a list of a different length.
		if e.kind == d.kind || e.kind == "moves" && d.kind == "value" {
			e.needed = true
			return true
		}
	}
	return false
}

// A fields value contains the path of each field in the answers. It maps the
// path to true if the field had a non-default value in any of slurmrestd's
// answers.
type fields map[string]bool

// compare returns the fields that differ, and the number of compared fields. It
// compares lists element by element, in order.
func (seen fields) compare(at string, reference, gateway any) (found []difference, count int) {
	add := func(list []difference, n int) { found, count = append(found, list...), count+n }
	switch reference := reference.(type) {
	case map[string]any:
		got, ok := gateway.(map[string]any)
		if !ok {
			return []difference{{at, "type", reference, gateway}}, 1
		}
		for name, value := range reference {
			field := strings.TrimPrefix(at+"."+name, ".")
			if gotValue, ok := got[name]; ok {
				add(seen.compare(field, value, gotValue))
			} else {
				add([]difference{{field, "theirs", value, nil}}, 1)
			}
		}
		for name, value := range got {
			if _, ok := reference[name]; !ok {
				add([]difference{{strings.TrimPrefix(at+"."+name, "."), "ours", nil, value}}, 1)
			}
		}
		return found, count
	case []any:
		got, ok := gateway.([]any)
		if !ok {
			return []difference{{at, "type", reference, gateway}}, 1
		}
		seen[at] = seen[at] || len(reference) > 0
		if len(reference) != len(got) {
			return []difference{{at, "value", reference, gateway}}, 1
		}
		if strings.HasSuffix(at, "].accounting") { // the daemon sends usage in the order in which its database finds it
			reference, got = sortedByText(reference), sortedByText(got)
		}
		for i := range reference {
			add(seen.compare(at+"[]", reference[i], got[i]))
		}
		return found, count
	}
	seen[at] = seen[at] || isSet(reference)
	if a, b := fmt.Sprintf("%T", reference), fmt.Sprintf("%T", gateway); a != b {
		return []difference{{at, "type", reference, gateway}}, 1
	}
	if reference != gateway && !sameNumber(reference, gateway) {
		return []difference{{at, "value", reference, gateway}}, 1
	}
	return nil, 1
}

// sortedByText returns a copy of list that is ordered by the elements as text.
func sortedByText(list []any) []any {
	return slices.SortedFunc(slices.Values(list), func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// isSet reports whether a value differs from the default.
func isSet(v any) bool {
	return !slices.Contains([]string{"<nil>", "", "0", "0.0", "false"}, fmt.Sprint(v))
}

// sameNumber reports whether two fractions are equal, even if they are written
// differently. Slurm writes 17 digits. The gateway writes only as many digits
// as are needed to identify the number. The last digit may differ, because
// slurmrestd first rounds the controller's fractions to a longer format.
func sameNumber(reference, gateway any) bool {
	a, ok := reference.(json.Number)
	b, _ := gateway.(json.Number)
	if !ok || strings.ContainsAny(string(a), ".e") != strings.ContainsAny(string(b), ".e") {
		return false
	}
	x, err := a.Float64()
	y, errB := b.Float64()
	return err == nil && errB == nil && strings.ContainsAny(string(a), ".e") && (x == y || math.Nextafter(x, y) == y)
}
