// Package abuse sends the gateway requests that no honest client sends. It
// sends them over HTTP/1, HTTP/2 and TLS, directly and through proxies. Each
// request must get the answer that a table expects for it, and must not affect
// other clients.
package abuse

import (
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
