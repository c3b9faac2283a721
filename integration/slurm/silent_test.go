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

var update = flag.Bool("update", false, "write the lists of fields that said nothing anew")

// silent keeps the list of fields that never took another value than the default, so that the comparison says nothing
// of them: testdata/silent, one list a release. A field that said something when the list was made has to do so again.
func (m *machine) silent(t *testing.T, excepted exceptions, seen map[string]fields) {
	t.Helper()
	spoke := map[string]bool{} // by the record that the field is of, whoever shows it
	for endpoint, fields := range seen {
		for field, said := range fields {
			if name := recorded(endpoint, field); name != "" && !excepted.moves(endpoint, field) {
				spoke[name] = spoke[name] || said
			}
		}
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(spoke)) {
		if !spoke[name] {
			list = append(list, name)
		}
	}
	t.Logf("of %d fields of records %d never took another value than the default", len(spoke), len(list))
	file := filepath.Join("testdata", "silent", m.release+".txt")
	if *update {
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(strings.Join(list, "\n")+"\n"), 0o644))
	}
	text, err := os.ReadFile(file)
	must(t, err)
	listed := strings.Fields(string(text))
	for _, name := range list {
		if !slices.Contains(listed, name) {
			t.Errorf("%s took no other value than the default, and once did: furnish it, or list it in %s (-update)", name, file)
		}
	}
}

// recorded names a field after what it is of: "slurm jobs[].name". Envelopes are the same all over.
func recorded(endpoint, field string) string {
	record, _, _ := strings.Cut(field, ".")
	if slices.Contains([]string{"meta", "errors", "warnings", "errors[]", "warnings[]"}, record) {
		return ""
	}
	spelling, _, _ := strings.Cut(strings.TrimPrefix(endpoint, "/"), "/")
	return spelling + "/" + field
}

// moves tells whether the page has a row for what changes from moment to moment.
func (list exceptions) moves(endpoint, field string) bool {
	return slices.ContainsFunc(list, func(e *exception) bool {
		return e.how == "moves" && e.path.MatchString(endpoint) && e.field.MatchString(field)
	})
}
