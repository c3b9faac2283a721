// Package chaos puts a gateway under load while its processes and the
// controller are killed.
package chaos

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
