// Package attack tests forged tokens, tokens in the wrong places, tokens that leak, and bodies that parsers
// disagree on.
package attack

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
