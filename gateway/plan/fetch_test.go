package plan

import (
	"os"
	"testing"

	"schedrestd/gateway/fetcher/confined"
)

// TestMain lets the test binary serve as the process that fetches the
// configuration.
func TestMain(m *testing.M) {
	if confined.Requested(os.Args) {
		os.Exit(confined.Main())
	}
	os.Exit(m.Run())
}
