package plan

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"schedrestd/gateway/plan/option"
	"schedrestd/internal/feature"
)

const manual = "../../docs/man/schedrestd.8"

// TestManual checks that the manual lists every option and environment variable
// that the command accepts, and no others. It must also list every word that
// SCHEDRESTD_SECURITY accepts, and every value of -a, -d and -s.
func TestManual(t *testing.T) {
	data, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	entries := map[string]bool{} // flags and variables with an entry
	for line := range strings.Lines(page) {
		if rest, ok := strings.CutPrefix(line, ".It "); ok {
			for _, m := range regexp.MustCompile(`(Fl|Ev) (-?[A-Za-z_-]+)`).FindAllStringSubmatch(rest, -1) {
				entries[m[1]+" "+m[2]] = true
			}
		}
	}
	want := map[string]bool{}
	newCommand(new(fakeHost), startHere(), io.Discard).Flags().VisitAll(func(f *pflag.Flag) {
		want["Fl -"+f.Name] = true
		if f.Shorthand != "" {
			want["Fl "+f.Shorthand] = true
		}
	})
	for _, v := range option.Variables() {
		want["Ev "+v] = true
	}
	for name := range want {
		if !entries[name] {
			t.Errorf("%s has no entry", name)
		}
	}
	for name := range entries {
		if !want[name] {
			t.Errorf("%s has an entry, and the command does not know it", name)
		}
	}
	words := option.SwitchNames()
	for _, l := range option.Levels {
		words = append(words, l.Name)
	}
	for _, f := range feature.AllFlags {
		words = append(words, f.Name)
	}
	for _, e := range feature.Auths {
		words = append(words, e.Name)
	}
	for _, e := range feature.Contents {
		words = append(words, e.Name)
	}
	for _, w := range words {
		if !regexp.MustCompile(`(?m)^\.(It )?(Fl . )?Cm .*` + regexp.QuoteMeta(w) + `|^\.Cm (quiet|debug) .*\b` + regexp.QuoteMeta(w) + `\b`).MatchString(page) {
			t.Errorf("%s is not explained", w)
		}
	}
	for _, f := range option.GatewayFlags {
		if !strings.Contains(strings.ToLower(page), f) {
			t.Errorf("the debug flag %s is not there", f)
		}
	}
}

// TestManualsAreSound checks that mandoc and groff, which typeset manual pages,
// print no warnings about our pages.
func TestManualsAreSound(t *testing.T) {
	pages, err := filepath.Glob("../../docs/man/*.[1-9]")
	if err != nil || len(pages) < 5 {
		t.Fatalf("pages %v: %v", pages, err)
	}
	checked := false
	for _, page := range pages {
		for _, tool := range []string{"mandoc -Tlint", "groff -ww -mdoc -Tutf8 -z"} {
			args := append(strings.Fields(tool), page)
			if _, err := exec.LookPath(args[0]); err != nil {
				continue
			}
			checked = true
			var out, messages strings.Builder // mandoc may switch between stdout and stderr within a line
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Stdout, cmd.Stderr = &out, &messages
			_ = cmd.Run()
			for line := range strings.Lines(out.String() + "\n" + messages.String()) {
				// Ignore messages about other manuals, because these messages
				// depend on the machine. For schedrestd(8), also ignore
				// messages about long lines.
				if line == "\n" || strings.Contains(line, "mandoc.db") || strings.Contains(line, "referenced manual not found") ||
					page == manual && strings.Contains(line, ": STYLE: ") {
					continue
				}
				t.Errorf("%s: %s", tool, line)
			}
		}
	}
	if !checked {
		t.Skip("neither mandoc nor groff is installed")
	}
}
