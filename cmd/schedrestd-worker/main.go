// Command schedrestd-worker is the process of the gateway that reads what comes from the
// network. schedrestd starts it; started by hand it says so and exits with 2.
package main

import (
	"os"

	"schedrestd/worker"
)

func init() { worker.Rename() }

func main() { os.Exit(worker.Main(worker.Join)) }
