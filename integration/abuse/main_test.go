// Package abuse sends the gateway requests that no honest client sends: over
// HTTP/1, HTTP/2 and TLS, directly and through proxies. It checks that each
// request gets the answer that its row in a table expects, and affects no other
// client.
package abuse

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
