// Command schedrestd-keeper is the process of the gateway that holds its secret
// keys. It signs TLS handshakes and verifies tokens for the workers. schedrestd
// starts it. Started by hand, it prints an error and exits with status 2. -V
// prints its version.
package main

import (
	"fmt"
	"os"

	"schedrestd/keeper"
	"schedrestd/release"
)

func init() { keeper.Rename() }

func main() {
	if release.VersionRequested(os.Args) {
		fmt.Println("schedrestd-keeper " + release.Build())
		return
	}
	os.Exit(keeper.Main())
}
