// Package inetd tests the gateway in inetd mode, and with sockets that a
// service manager passes to it.
package inetd

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
