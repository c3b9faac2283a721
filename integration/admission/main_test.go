// Package admission tests the limits for clients: penalties for addresses and
// users, exemptions, request rates, and fair shares. It also tests network
// namespaces, and users who listen on the port of a daemon.
package admission

import (
	"fmt"
	"os"
	"testing"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) {
	if options := os.Getenv(floodVariable); options != "" {
		if err := flood(options); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	harness.Main(m)
}
