// Package api tests the parts of the API that clients see: paths, fields,
// formats, documents, and long lists.
package api

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
