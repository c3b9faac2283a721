// Command schedrestd-auditor is the process of the gateway that keeps the audit
// log. schedrestd starts it. Started by hand, it prints an error and exits with
// status 2. -V prints its version.
package main

import (
	"fmt"
	"os"

	"schedrestd/auditor"
	"schedrestd/release"
)

func init() { auditor.Rename() }

func main() {
	if release.VersionRequested(os.Args) {
		fmt.Println("schedrestd-auditor " + release.Build())
		return
	}
	os.Exit(auditor.Main())
}
