// Command schedrestd-keeper is the process of the gateway that holds the private key of its
// https:// listeners, and signs handshakes with it for the workers. schedrestd starts it;
// started by hand it says so and exits with 2.
package main

import (
	"os"

	"schedrestd/keeper"
)

func init() { keeper.Rename() }

func main() { os.Exit(keeper.Main()) }
