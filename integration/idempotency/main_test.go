// Package idempotency tests the Idempotency-Keys of submissions across workers,
// restarts and crashes of the gateway.
package idempotency

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
