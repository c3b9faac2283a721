// Package admission tests the limits for clients: penalties for addresses and
// users, exemptions, request rates, and fair shares. It also tests network
// namespaces, and users who listen on the port of a daemon.
package admission

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
