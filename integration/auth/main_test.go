// Package auth tests keys and tokens between clients, gateway and daemons:
// which keys are accepted, when they change, which users may create tokens, and
// which program verifies them.
package auth

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
