// Package api tests what clients see of the API: paths, fields, formats, documents, and lists that are long.
package api

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
