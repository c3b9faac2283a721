package main

import (
	"bytes"
	"testing"
)

// TestWrongCommandLines checks the errors about words before the name of a
// command, and their exit status.
func TestWrongCommandLines(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--verbose", "jobs"}, "error: unknown flag: --verbose\nhint: the options of a command follow its name, as in schedctl jobs --verbose\n"},
		{[]string{"jbos"}, "error: unknown command \"jbos\"\nhint: did you mean jobs?\n"},
		{[]string{"nonsense"}, "error: unknown command \"nonsense\"\nhint: schedctl --help lists the commands\n"},
		{[]string{"token", "--bogus"}, "error: unknown flag: --bogus\nhint: see schedctl token --help\n"},
	} {
		var out, errOut bytes.Buffer
		if status := run(tt.args, &out, &errOut); status != 2 || errOut.String() != tt.want || out.Len() > 0 {
			t.Errorf("%q: status %d, %s%s", tt.args, status, &out, &errOut)
		}
	}
}

// TestCompletedOptions checks that a completion describes an option in plain
// words.
func TestCompletedOptions(t *testing.T) {
	var out, errOut bytes.Buffer
	run([]string{"__complete", "jobs", "--stat"}, &out, &errOut)
	if want := "--state\tjobs in these STATES, such as PENDING or R\n:4\n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
}
