package daemon

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// TestManuals checks that the manual page of each daemon lists all options of
// the daemon and no others.
func TestManuals(t *testing.T) {
	want := map[string]bool{"h": true, "-help": true}
	Program{Name: "x"}.command().Flags().VisitAll(func(f *pflag.Flag) {
		want["-"+f.Name] = true
		if f.Shorthand != "" {
			want[f.Shorthand] = true
		}
	})
	for _, name := range []string{"schedctld", "scheddbd"} {
		page, err := os.ReadFile("../../docs/man/" + name + ".8")
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, entry := range regexp.MustCompile(`(?m)^\.It (.*)$`).FindAllStringSubmatch(string(page), -1) {
			for _, m := range regexp.MustCompile(`Fl (-?[A-Za-z-]+)`).FindAllStringSubmatch(entry[1], -1) {
				got[m[1]] = true
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-that the command has +that the page has):\n%s", name, diff)
		}
	}
}
