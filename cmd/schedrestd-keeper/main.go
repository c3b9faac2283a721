// Command schedrestd-keeper is the process of the gateway that holds the private key of its
// https:// listeners, and signs handshakes with it for the workers. schedrestd starts it;
// started by hand it says so and exits with 2. -V prints its version.
package main

import (
	"fmt"
	"os"

	"schedrestd/keeper"
	"schedrestd/release"
)

func init() { keeper.Rename() }

func main() {
	if release.Asked(os.Args) {
		fmt.Println("schedrestd-keeper " + release.Build())
		return
	}
	os.Exit(keeper.Main())
}
