// Package admission tests how connections and requests share the gateway:
// penalties for addresses and users, fair shares, exemptions, network
// namespaces, and users who listen on the port of a daemon.
package admission

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
