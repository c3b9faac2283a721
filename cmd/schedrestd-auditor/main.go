// Command schedrestd-auditor is the gateway process that writes the audit log.
// schedrestd starts it. If it is started by hand, it prints an error and exits
// with status 2. With -V it prints its version.
package main

import (
	"fmt"
	"os"

	"schedrestd/gateway/auditor"
	"schedrestd/internal/release"
)

func init() { auditor.Rename() }

func main() {
	if release.VersionRequested(os.Args) {
		fmt.Println("schedrestd-auditor " + release.Build())
		return
	}
	os.Exit(auditor.Main())
}
