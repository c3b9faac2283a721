// Command schedrestd-exporter is the gateway process that serves metrics.
// schedrestd starts it. If it is started by hand, it prints an error and exits
// with status 2. With -V it prints its version.
package main

import (
	"fmt"
	"os"

	"schedrestd/gateway/exporter"
	"schedrestd/internal/release"
)

func init() { exporter.Rename() }

func main() {
	if release.VersionRequested(os.Args) {
		fmt.Println("schedrestd-exporter " + release.Build())
		return
	}
	os.Exit(exporter.Main())
}
