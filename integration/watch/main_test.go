// Package watch tests clients that wait for changes, or follow them, with the
// gateway and the bundled daemons.
package watch

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
