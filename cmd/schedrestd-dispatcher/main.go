// Command schedrestd-dispatcher is the gateway process that passes connections
// to workers. schedrestd starts it. If it is started by hand, it prints an
// error and exits with status 2. With -V it prints its version.
package main

import (
	"fmt"
	"os"

	"schedrestd/gateway/dispatcher"
	"schedrestd/internal/release"
)

func init() { dispatcher.Rename() }

func main() {
	if release.VersionRequested(os.Args) {
		fmt.Println("schedrestd-dispatcher " + release.Build())
		return
	}
	os.Exit(dispatcher.Main())
}
