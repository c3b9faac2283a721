// Package proxy tests the gateway with programs from other projects: proxies,
// identity providers, and libraries that make tokens.
package proxy

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
