// Package gateway tests the features of the gateway that administrators use:
// options, identity, confinement, listeners, TLS, signals and the log.
package gateway

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
