// Command schedrestd-config is the gateway process that reads the command line,
// the environment and the configuration. schedrestd starts it. To fetch the
// configuration from a controller, it starts itself again (package fetcher). If
// it is started by hand, it prints an error and exits with status 2. With -V it
// prints its version.
package main

import (
	"os"

	"schedrestd/gateway/fetcher"
	"schedrestd/gateway/plan"
)

func init() {
	if fetcher.Requested(os.Args) {
		fetcher.Rename()
	}
}

func main() { os.Exit(plan.Main()) }
