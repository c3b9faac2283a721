// Package admission tests how connections and requests share the gateway:
// penalties for addresses and users, fair shares, exemptions, network
// namespaces, and ports of daemons that other users have bound.
package admission

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
