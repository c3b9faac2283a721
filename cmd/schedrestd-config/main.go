// Command schedrestd-config is the process of the gateway that reads command line, environment
// and configuration. schedrestd starts it; started by hand it says so and exits with 2. -V prints
// its version.
package main

import (
	"os"

	"schedrestd/plan"
)

func main() { os.Exit(plan.Main()) }
