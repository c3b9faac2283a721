// Package status tests the page at /status in a browser: with the bundled
// daemons, and with a controller that plays a large cluster.
package status

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
