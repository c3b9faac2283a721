package slurm

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exceptions are the rows of docs/DIFFERENCES.md.
type exceptions []*exception

// exception is a field in which the two gateways may differ.
type exception struct {
	line     int
	releases string // "all", or several separated by commas
	versions string
	path     *regexp.Regexp // path without the version
	field    *regexp.Regexp
	how      string
	needed   bool
}

// hows are the kinds of differences that a row may permit.
var hows = []string{
	"value", // another value of the same type
	"type",  // another type
	"theirs",
	"ours", // only one of the answers has the field
	"moves",
}

// readExceptions reads the page's table.
func readExceptions(t *testing.T, file string) (list exceptions) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	for i, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 6 || strings.HasPrefix(line, "| release") || strings.HasPrefix(line, "| ---") {
			continue
		}
		e := &exception{line: i + 1, releases: cells[0], versions: cells[1], how: cells[4],
			path: pattern(cells[2], "/"), field: pattern(cells[3], ".")}
		if !slices.Contains(hows, e.how) || strings.TrimSpace(cells[5]) == "" {
			t.Fatalf("%s:%d: no such kind of difference, or no reason: %s", file, e.line, line)
		}
		list = append(list, e)
	}
	if len(list) == 0 {
		t.Fatalf("%s has no table", file)
	}
	return list
}

// pattern returns the regular expression for a name in backquotes. The argument
// between is the character that separates the parts of such a name. In the
// name, * stands for all or some of one part, and ** for any text.
func pattern(cell, between string) *regexp.Regexp {
	s := regexp.QuoteMeta(strings.Trim(cell, "`"))
	s = strings.ReplaceAll(s, `\*\*`, `.*`)
	s = strings.ReplaceAll(s, `\*`, `[^`+between+`]*`)
	return regexp.MustCompile("^" + s + "$")
}

func has(list, one string) bool {
	return list == "all" || slices.Contains(strings.Split(list, ", "), one)
}

// difference is a field that differs.
type difference struct {
	field        string // such as jobs[].name
	how          string
	theirs, ours any
}

func (d difference) String() string {
	cut := func(v any) string {
		s := fmt.Sprintf("%#v", v)
		if len(s) > 150 {
			s = s[:150] + "…"
		}
		return s
	}
	switch d.how {
	case "theirs":
		return fmt.Sprintf("%s: only theirs, %s", d.field, cut(d.theirs))
	case "ours":
		return fmt.Sprintf("%s: only ours, %s", d.field, cut(d.ours))
	}
	return fmt.Sprintf("%s: %s: theirs %s, ours %s", d.field, d.how, cut(d.theirs), cut(d.ours))
}

// allowed reports whether the page has a row for the difference.
func (list exceptions) allowed(release, version, path string, d difference) bool {
	for _, e := range list {
		if !has(e.releases, release) || !has(e.versions, version) || !e.path.MatchString(path) || !e.field.MatchString(d.field) {
			continue
		}
		// "moves" is for fields that change constantly. It permits another
		// value of the same type, and lists of another length.
		if e.how == d.how || e.how == "moves" && d.how == "value" {
			e.needed = true
			return true
		}
	}
	return false
}

// fields has the path of each field in the answers. The value is true if the
// field ever had a value other than the default.
type fields map[string]bool

// compare returns the fields that differ, and the number of compared fields. It
// compares the elements of lists by position.
func (seen fields) compare(at string, theirs, ours any) (found []difference, count int) {
	add := func(list []difference, n int) { found, count = append(found, list...), count+n }
	switch theirs := theirs.(type) {
	case map[string]any:
		mine, ok := ours.(map[string]any)
		if !ok {
			return []difference{{at, "type", theirs, ours}}, 1
		}
		for name, value := range theirs {
			field := strings.TrimPrefix(at+"."+name, ".")
			if own, ok := mine[name]; ok {
				add(seen.compare(field, value, own))
			} else {
				add([]difference{{field, "theirs", value, nil}}, 1)
			}
		}
		for name, value := range mine {
			if _, ok := theirs[name]; !ok {
				add([]difference{{strings.TrimPrefix(at+"."+name, "."), "ours", nil, value}}, 1)
			}
		}
		return found, count
	case []any:
		mine, ok := ours.([]any)
		if !ok {
			return []difference{{at, "type", theirs, ours}}, 1
		}
		seen[at] = seen[at] || len(theirs) > 0
		if len(theirs) != len(mine) {
			return []difference{{at, "value", theirs, ours}}, 1
		}
		for i := range theirs {
			add(seen.compare(at+"[]", theirs[i], mine[i]))
		}
		return found, count
	}
	seen[at] = seen[at] || said(theirs)
	if a, b := fmt.Sprintf("%T", theirs), fmt.Sprintf("%T", ours); a != b {
		return []difference{{at, "type", theirs, ours}}, 1
	}
	if theirs != ours && !sameNumber(theirs, ours) {
		return []difference{{at, "value", theirs, ours}}, 1
	}
	return nil, 1
}

// said reports whether a value differs from the default.
func said(v any) bool {
	return !slices.Contains([]string{"<nil>", "", "0", "0.0", "false"}, fmt.Sprint(v))
}

// sameNumber reports whether two fractions differ only in their notation. Slurm
// writes 17 digits. The gateway writes as many as distinguish the number from
// all others.
func sameNumber(theirs, ours any) bool {
	a, ok := theirs.(json.Number)
	b, _ := ours.(json.Number)
	if !ok || strings.ContainsAny(string(a), ".e") != strings.ContainsAny(string(b), ".e") {
		return false
	}
	x, err := a.Float64()
	y, wrong := b.Float64()
	return err == nil && wrong == nil && strings.ContainsAny(string(a), ".e") && x == y
}
