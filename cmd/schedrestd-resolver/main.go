// Command schedrestd-resolver is the gateway process that looks up users and
// groups for the other processes. schedrestd starts it. If it is started by
// hand, it prints an error and exits with status 2. With -V it prints its
// version.
package main

import (
	"fmt"
	"os"

	"schedrestd/gateway/resolver"
	"schedrestd/internal/release"
)

func init() { resolver.Rename() }

func main() {
	if release.VersionRequested(os.Args) {
		fmt.Println("schedrestd-resolver " + release.Build())
		return
	}
	os.Exit(resolver.Main())
}
