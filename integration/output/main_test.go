// Package output tests that users read the output of their own jobs, with the
// real programs.
package output

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
