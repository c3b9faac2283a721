package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBashCompletion checks that the script for bash works without the package
// bash-completion. The test replaces schedctl with a function that prints its
// arguments as completions.
func TestBashCompletion(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	var script, errOut bytes.Buffer
	if status := run([]string{"completion", "bash"}, &script, &errOut); status != 0 {
		t.Fatalf("status %d, %s", status, errOut.Bytes())
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
