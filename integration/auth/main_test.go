// Package auth tests the keys and tokens of clients, gateway and daemons: which
// keys are accepted, when a new key is used, which users may create tokens, and
// which program verifies a token.
package auth

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
