// Command schedrestd-keeper is the gateway process that holds the secret keys.
// It signs TLS handshakes and verifies tokens for the workers. schedrestd
// starts it. If it is started by hand, it prints an error and exits with status
// 2. With -V it prints its version.
package main

import (
	"fmt"
	"os"

	"schedrestd/gateway/keeper"
	"schedrestd/internal/release"
)

func init() { keeper.Rename() }

func main() {
	if release.VersionRequested(os.Args) {
		fmt.Println("schedrestd-keeper " + release.Build())
		return
	}
	os.Exit(keeper.Main())
}
