// Package sandboxtest skips tests that need a process in the sandbox.
package sandboxtest

import (
	"testing"

	"schedrestd/security"
)

// Need skips the test if the test binary can't enter the sandbox.
func Need(t testing.TB) {
	t.Helper()
	if Cgo && security.Sandboxed {
		t.Skip("needs a program without cgo, because it can confine all of its threads")
	}
}
