// Package jobs tests jobs from their submission to the accounting record. It
// tests which users jobs run as, the limits, quotas and privacy of jobs, and
// what happens when the controller is killed.
package jobs

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
