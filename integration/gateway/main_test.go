// Package gateway tests the gateway as administrators use it: options,
// identity, confinement, listeners, TLS, signals and log.
package gateway

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
