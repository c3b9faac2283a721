// Command schedrestd-credential is the gateway process that gets credentials of
// MUNGE or auth/slurm for the messages of one user, as this user. schedrestd
// starts it. If it is started by hand, it prints an error and exits with status
// 2. With -V it prints its version.
package main

import (
	"fmt"
	"os"

	"schedrestd/gateway/credential"
	"schedrestd/internal/release"
)

func init() { credential.Rename() }

func main() {
	if release.VersionRequested(os.Args) {
		fmt.Println("schedrestd-credential " + release.Build())
		return
	}
	os.Exit(credential.Main())
}
