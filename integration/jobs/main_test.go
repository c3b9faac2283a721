// Package jobs tests jobs from their submission to the accounting record: the
// users they run as, their limits, quotas and privacy, and controllers that are
// killed.
package jobs

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
