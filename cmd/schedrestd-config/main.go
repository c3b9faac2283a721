// Command schedrestd-config is the gateway process that reads the command line,
// the environment and the configuration. schedrestd starts it. If it is started
// by hand, it prints an error and exits with status 2. With -V it prints its
// version.
package main

import (
	"os"

	"schedrestd/gateway/plan"
)

func main() { os.Exit(plan.Main()) }
