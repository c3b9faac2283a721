// Command schedrestd-output is the gateway process that reads the output files
// of a user's jobs, as this user. schedrestd starts it. If it is started by
// hand, it prints an error and exits with status 2. With -V it prints its
// version.
package main

import (
	"fmt"
	"os"

	"schedrestd/gateway/output"
	"schedrestd/internal/release"
)

func init() { output.Rename() }

func main() {
	if release.VersionRequested(os.Args) {
		fmt.Println("schedrestd-output " + release.Build())
		return
	}
	os.Exit(output.Main())
}
