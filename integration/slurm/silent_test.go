package slurm

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "add to the lists of fields that say nothing, or only sometimes")

// checkSilent fails the test if a field always had the default value in this
// run, because a comparison of such a field proves nothing. testdata/silent has
// a list for each release. The fields in the list may always have the default
// value. With -update, checkSilent updates the list instead.
func (m *machine) checkSilent(t *testing.T, excepted exceptions, seen map[string]fields) {
	t.Helper()
	nonDefault := map[string]bool{} // whether any answer had a non-default value in a field of a record
	for endpoint, fields := range seen {
		for field, hasValue := range fields {
			if name := recordField(endpoint, field); name != "" && !excepted.moves(endpoint, field) {
				nonDefault[name] = nonDefault[name] || hasValue
			}
		}
	}
	file := filepath.Join("testdata", "silent", m.release+".txt")
	listed := readSilent(t, file)
	var silent []string
	for _, name := range slices.Sorted(maps.Keys(nonDefault)) {
		_, known := listed[name]
		switch hasValue := nonDefault[name]; {
		case hasValue && known:
			listed[name] = sometimes
		case hasValue:
		case known:
			silent = append(silent, name)
		case *update:
			listed[name] = sometimes
		default:
			t.Errorf("%s always had the default value, but not in earlier runs: give it a value in populate, or list it in %s (-update)", name, file)
		}
	}
	t.Logf("of %d fields of records, %d always had the default value", len(nonDefault), len(silent))
	if *update {
		writeSilent(t, file, listed)
	}
}

// sometimes follows the name of a listed field that has a non-default value in
// some runs but not in others, for example because a scheduler is running.
const sometimes = " sometimes"

func readSilent(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	listed := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, suffix, _ := strings.Cut(strings.TrimSpace(line), " ")
		if listed[name] = ""; suffix != "" {
			listed[name] = " " + suffix
		}
	}
	return listed
}

func writeSilent(t *testing.T, file string, listed map[string]string) {
	t.Helper()
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		text.WriteString(name + listed[name] + "\n")
	}
	must(t, os.WriteFile(file, []byte(text.String()), 0o644))
}

// recordField returns the name of a field with its record, such as
// "slurm/jobs[].name". It returns "" for fields of the envelope, which are the
// same in all answers.
func recordField(endpoint, field string) string {
	record, _, _ := strings.Cut(field, ".")
	if slices.Contains([]string{"meta", "errors", "warnings", "errors[]", "warnings[]"}, record) {
		return ""
	}
	spelling, _, _ := strings.Cut(strings.TrimPrefix(endpoint, "/"), "/")
	return spelling + "/" + field
}

// moves reports whether fieldTable says that the field changes constantly.
func (list exceptions) moves(endpoint, field string) bool {
	return slices.ContainsFunc(list, func(e *exception) bool {
		return e.kind == "moves" && e.path.MatchString(endpoint) && e.field.MatchString(field)
	})
}
