package install

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/integration/page"
)

// Each block of commands in README is run as printed: by a person's first steps on a bare machine, or, where it
// runs these tests themselves, by .ci/run.
func TestReadme(t *testing.T) {
	t.Parallel()
	blocks, err := page.Blocks(filepath.Join(harness.Root, "README.md"))
	harness.Must(t, err)
	ci, err := os.ReadFile(filepath.Join(harness.Root, ".ci/run"))
	harness.Must(t, err)
	var steps strings.Builder
	for _, b := range blocks {
		target := regexp.MustCompile(`^make (test|integration-slurm)\n$`).FindStringSubmatch(b.Text)
		switch {
		case target != nil:
			if !regexp.MustCompile(`(?m)^\s*(step make|machine) ` + target[1] + `\b`).Match(ci) {
				t.Errorf("README.md:%d: .ci/run does not run make %s", b.Line, target[1])
			}
		case strings.HasPrefix(b.Text, "make demo "):
			t.Run("demo", func(t *testing.T) { readmeDemo(t, b) })
		default:
			fmt.Fprintf(&steps, "echo 'README.md:%d' >&2\n%s", b.Line, b.Text)
		}
	}
	t.Run("configuration", func(t *testing.T) {
		out, err := onBareMachine(t, steps.String())
		if err != nil || !regexp.MustCompile(`"pinged":"UP"`).MatchString(out) || strings.Contains(out, "level=WARN") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// readmeDemo runs the demo's block until it says that it stays, and ends it as Ctrl-C does.
func readmeDemo(t *testing.T, b page.Block) {
	out, err := onBareMachine(t, `set -m
(
`+b.Text+`) >/run/printed 2>&1 &
until grep '^Ctrl-C' /run/printed; do kill -0 $! || break; sleep 0.2; done
grep '^curl .*ping' /run/printed >/run/pasted
bash -e /run/pasted
kill -INT -$!
wait $! || true
cat /run/printed
! pgrep sched
`)
	if err != nil || !strings.Contains(out, `"pinged":"UP"`) {
		t.Errorf("%v\n%s", err, out)
	}
}
