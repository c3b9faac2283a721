// Package abuse sends the gateway what no client sends that means well, over HTTP/1, HTTP/2 and TLS, directly and
// through proxies: each of it is answered as its row says, and harms nobody else.
package abuse

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
