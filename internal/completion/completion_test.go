package completion

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestBashCompletion checks that the script for bash works without the package
// bash-completion, for a command with subcommands and for one without. The test
// replaces the command with a function that prints its arguments as completions.
func TestBashCompletion(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	for _, hasSubcommands := range []bool{true, false} {
		testBash(t, bash, hasSubcommands)
	}
}

func testBash(t *testing.T, bash string, hasSubcommands bool) {
	nop := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "schedctl", Args: cobra.ArbitraryArgs, Run: nop}
	if hasSubcommands {
		root.AddCommand(&cobra.Command{Use: "jobs", Run: nop})
	}
	var script bytes.Buffer
	args := []string{"completion", "bash"}
	root.SetArgs(args)
	root.SetOut(&script)
	WithoutPackage(root, args)
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "completion.bash")
	if err := os.WriteFile(file, script.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	const ask = `
compopt() { :; }
source "$1" || exit
COMP_LINE=$2 COMP_POINT=${#2} COMP_TYPE=9 COMP_CWORD=$(($# - 4)) answer=$3
shift 3
COMP_WORDS=("$@")
schedctl() { echo "asked: $*" >&3; printf '%s\n' "$answer" :4; }
__start_schedctl 3>&2
printf '%s\n' "${COMPREPLY[@]}"
`
	for _, tt := range []struct {
		line, answer string
		words        []string
		asked, want  string
	}{
		{"schedctl ", "jobs\tList jobs", []string{"schedctl", ""}, "asked: __complete \n", "jobs\n"},
		{"schedctl job 1", "12", []string{"schedctl", "job", "1"}, "asked: __complete job 1\n", "12\n"},
		{"schedctl jobs --state=PEN", "PENDING", []string{"schedctl", "jobs", "--state", "=", "PEN"}, "asked: __complete jobs --state=PEN\n", "PENDING\n"},
		{"schedctl jobs --url http://a:1 --node ", "n1", []string{"schedctl", "jobs", "--url", "http", ":", "//a", ":", "1", "--node", ""}, "asked: __complete jobs --url http://a:1 --node \n", "n1\n"},
	} {
		cmd := exec.Command(bash, append([]string{"--norc", "--noprofile", "-c", ask, "ask", file, tt.line, tt.answer}, tt.words...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil || !strings.HasPrefix(stdout.String(), tt.want) || !strings.Contains(stderr.String(), tt.asked) || strings.Contains(stderr.String(), "not found") {
			t.Errorf("%q: %v, %q, %s", tt.line, err, stdout.String(), stderr.String())
		}
	}
}

// TestOtherCommandLines checks that a command without subcommands gets none if
// its command line does not ask for completions.
func TestOtherCommandLines(t *testing.T) {
	for _, args := range [][]string{nil, {"127.0.0.1:0"}, {"unix:/bash", "completion"}} {
		var got []string
		root := &cobra.Command{Use: "schedrestd", Args: cobra.ArbitraryArgs, Run: func(_ *cobra.Command, args []string) { got = args }}
		root.SetArgs(args)
		WithoutPackage(root, args)
		if err := root.Execute(); err != nil || len(got) != len(args) {
			t.Errorf("%q: %q, %v", args, got, err)
		}
	}
}
