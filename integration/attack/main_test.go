// Package attack tests forged tokens, tokens in wrong places, leaked tokens,
// and bodies that parsers interpret differently.
package attack

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
