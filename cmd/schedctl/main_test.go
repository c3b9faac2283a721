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
