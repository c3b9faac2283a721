// Package inetd tests the gateway on standard input and on sockets of a service
// manager.
package inetd

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
