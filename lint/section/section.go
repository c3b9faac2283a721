// Package section is for tests that compare a generated part of a page with the
// text that the code generates. The part is between two marks, which are
// comments in the page.
package section

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Check compares text with the section of a page that is between two lines,
// begin and end. If update is set, it writes text into the section instead.
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
