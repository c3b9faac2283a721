// Command schedrestd-exporter is the process of the gateway that serves its
// metrics. schedrestd starts it. Started by hand, it prints an error and exits
// with status 2. -V prints its version.
package main

import (
	"fmt"
	"os"

	"schedrestd/exporter"
	"schedrestd/release"
)

func init() { exporter.Rename() }

func main() {
	if release.VersionRequested(os.Args) {
		fmt.Println("schedrestd-exporter " + release.Build())
		return
	}
	os.Exit(exporter.Main())
}
