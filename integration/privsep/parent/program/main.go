// Command program is the parent of the gateways that the tests of package
// privsep start. The test binary can also act as the parent, but it is large: it
// needs several times the processor time to start. The parent executes its own
// program for each process that it starts with another user.
package main

import (
	"os"

	"schedrestd/integration/privsep/parent"
)

func main() { os.Exit(parent.Main()) }
