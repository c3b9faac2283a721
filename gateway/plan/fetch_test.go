package plan

import (
	"os"
	"testing"

	"schedrestd/gateway/fetcher"
	"schedrestd/security"
)

// TestMain lets the test binary serve as the program that fetches the
// configuration.
func TestMain(m *testing.M) {
	if fetcher.Requested(os.Args) {
		os.Exit(fetcher.Main())
	}
	os.Exit(m.Run())
}

func needSandbox(t *testing.T) {
	if cgo && security.Sandboxed {
		t.Skip("needs a program without cgo, because it can confine all of its threads")
	}
}
