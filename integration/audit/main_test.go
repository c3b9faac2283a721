// Package audit tests the audit log: what is in it, its rotation, and what happens when it can't be written.
package audit

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
