package install

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/integration/page"
	"schedrestd/internal/release"
)

// TestReadme runs the commands in README as printed, on a machine on which
// nothing of this project is installed. It does not run "make test", to which
// it belongs itself.
func TestReadme(t *testing.T) {
	t.Parallel()
	blocks, err := page.Blocks(filepath.Join(harness.Root, "README.md"))
	harness.Must(t, err)
	var steps strings.Builder
	for _, b := range blocks {
		if strings.HasPrefix(b.Text, "make demo ") {
			demo, test, _ := strings.Cut(b.Text, "\n")
			if !strings.HasPrefix(test, "make test ") || strings.Count(test, "\n") != 1 {
				t.Errorf("README.md:%d: the quick start is not make demo and make test:\n%s", b.Line, b.Text)
			}
			t.Run("demo", func(t *testing.T) { readmeDemo(t, demo) })
			continue
		}
		steps.WriteString(script("README.md", b))
	}
	t.Run("steps", func(t *testing.T) {
		out, err := onBareMachine(t, steps.String()+"schedrestd -V\n")
		if err != nil || !strings.Contains(out, "schedrestd "+release.Version) {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// TestContributing checks that .ci/run runs the tests that CONTRIBUTING names.
func TestContributing(t *testing.T) {
	blocks, err := page.Blocks(filepath.Join(harness.Root, "CONTRIBUTING.md"))
	harness.Must(t, err)
	ci, err := os.ReadFile(filepath.Join(harness.Root, ".ci/run"))
	harness.Must(t, err)
	for _, b := range blocks {
		for line := range strings.Lines(b.Text) {
			target := regexp.MustCompile(`^make ([a-z-]+)`).FindStringSubmatch(line)
			if target == nil || !regexp.MustCompile(`(?m)^\s*(step make|machine) `+target[1]+`\b`).Match(ci) {
				t.Errorf("CONTRIBUTING.md:%d: .ci/run does not run %s", b.Line, line)
			}
		}
	}
}

// TestClients runs the command blocks of docs/BUNDLED.md, which start the
// bundled daemons. Then it runs those of the guide for clients. A script for web
// pages needs a browser, and is run elsewhere. A program that needs a library
// runs if the library is installed.
func TestClients(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	var steps strings.Builder
	for _, name := range []string{"docs/BUNDLED.md", "docs/CLIENTS.md"} {
		blocks, err := page.Blocks(filepath.Join(harness.Root, name))
		harness.Must(t, err)
		for _, b := range blocks {
			if b.Language != "js" {
				steps.WriteString(script(name, b))
			}
		}
		if name == "docs/BUNDLED.md" {
			steps.WriteString("cd \"$(mktemp -d)\"\n")
		}
	}
	out, err := onBareMachine(t, steps.String()+"grep -c '\"/sched/v0.0.43/job/submit\"' openapi.json\n")
	if err != nil || strings.Contains(out, "level=WARN") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{`"pinged":"UP"`, "one job\n", "job 1: COMPLETED\n", "hello from 1\n", "job 6 ['COMPLETED'] exit code 0\nhello from python\n",
		"job 7 ['CANCELLED']\nrefused: 409 2021\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// script returns the commands of a block, preceded by a command that prints the
// block's file and line.
func script(name string, b page.Block) string {
	text := b.Text
	if b.Language == "python" {
		text = "python3 - <<'END_OF_PYTHON'\n" + text + "END_OF_PYTHON\n"
		if library := regexp.MustCompile(`(?m)^import .*\b(requests|httpx)\b`).FindStringSubmatch(b.Text); library != nil {
			text = "if python3 -c 'import " + library[1] + "'; then " + text + "fi\n"
		}
	}
	return fmt.Sprintf("echo '%s:%d' >&2\n%s", name, b.Line, text)
}

// readmeDemo runs the command that starts the demo, and waits until the demo has
// shown a job and printed how to stop it. Then it runs commands that the demo has
// printed, and stops the demo with SIGINT, as Ctrl-C does.
func readmeDemo(t *testing.T, command string) {
	out, err := onBareMachine(t, `set -m
(
`+command+`
) >/run/printed 2>&1 &
until grep '^Ctrl-C' /run/printed; do kill -0 $! || break; sleep 0.2; done
grep -e '^curl .*ping' -e '^\. ' -e '^schedctl' /run/printed >/run/pasted
bash -e /run/pasted
kill -INT -$!
wait $! || true
cat /run/printed
! pgrep sched
`)
	for _, want := range []string{`"pinged":"UP"`, "| Hello from job 1 on head. I am root.", "hello  root  COMPLETED"} {
		if err != nil || !strings.Contains(out, want) {
			t.Fatalf("%v, want %q\n%s", err, want, out)
		}
	}
}
