// Package section helps tests compare a section of a documentation page with
// the text that code generates for it. Comments in the page mark the beginning
// and the end of the section.
package section

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Check reads the file whose path is page, and compares text with the section
// between the lines begin and end. If update is set, Check replaces the section
// with text instead.
func Check(t *testing.T, page, begin, end, text string, update bool) {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	old, after, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Fatalf("%s lacks %s or %s", page, strings.TrimSpace(begin), strings.TrimSpace(end))
	case !update:
		if diff := cmp.Diff(old, text); diff != "" {
			t.Errorf("%s is stale: repeat the test with -update (-page +code):\n%s", page, diff)
		}
	default:
		if err := os.WriteFile(page, []byte(before+begin+text+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
