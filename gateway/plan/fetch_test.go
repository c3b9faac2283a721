package plan

import (
	"os"
	"testing"

	"schedrestd/gateway/fetcher"
)

// TestMain lets the test binary serve as the program that fetches the
// configuration.
func TestMain(m *testing.M) {
	if fetcher.Requested(os.Args) {
		os.Exit(fetcher.Main())
	}
	os.Exit(m.Run())
}
