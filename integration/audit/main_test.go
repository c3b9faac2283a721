// Package audit tests the audit log: its contents, its rotation, and the cases
// in which it can't be written.
package audit

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
