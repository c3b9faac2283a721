// Package auth tests keys and tokens between clients, gateway and daemons: which keys count, when they change, who
// may make tokens, and who verifies them.
package auth

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
