// Command schedrestd-worker is the gateway process that reads input from the
// network. schedrestd starts it. If it is started by hand, it prints an error
// and exits with status 2. With -V it prints its version.
//
// If its first argument is "openapi", it prints the OpenAPI document and exits
// (see worker.Tables). If it is "answer-waiting", it answers the clients that
// wait while the gateway can't start (see worker.AnswerWaiting). If its name is
// schedrestd-fetch, it fetches the configuration (package confined).
package main

import (
	"bufio"
	"fmt"
	"os"

	"schedrestd/gateway/fetcher/confined"
	"schedrestd/gateway/proof"
	"schedrestd/gateway/worker"
	"schedrestd/internal/feature"
	"schedrestd/internal/notify"
	"schedrestd/internal/release"
	"schedrestd/security/sandbox"
	"schedrestd/security/self"
)

func init() {
	switch {
	case proof.Requested(os.Args):
		self.Rename("schedrestd-test")
	case confined.Requested(os.Args):
		confined.Rename()
	default:
		worker.Rename()
	}
}

func main() {
	if confined.Requested(os.Args) {
		os.Exit(confined.Main())
	}
	if release.VersionRequested(os.Args) {
		fmt.Println("schedrestd-worker " + release.Build())
		return
	}
	if len(os.Args) > 1 && os.Args[1] == feature.TablesMode {
		os.Exit(tables(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == worker.WaitingMode {
		os.Exit(answerWaiting())
	}
	if arg, ok := worker.NamespaceInitArg(os.Args); ok {
		os.Exit(worker.NamespaceInit(arg))
	}
	if status, ok := proof.Main(os.Args, worker.CloseSandbox, sandbox.DeathTests()); ok {
		os.Exit(status)
	}
	os.Exit(worker.Main(worker.NewHandler))
}

// tablesFiles limits the number of open descriptors while the OpenAPI document
// is printed. The process needs only the standard descriptors and those of the
// Go runtime.
const tablesFiles = 32

// tables prints the OpenAPI document. For this the process needs only its
// standard output, so it first enters its sandbox.
func tables(args []string) int {
	err := self.Confine(tablesFiles, false)
	if err == nil {
		out := bufio.NewWriter(os.Stdout)
		if err = worker.Tables(args, out); err == nil {
			err = out.Flush()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// answerWaiting answers the clients that wait at the sockets of the service
// manager.
func answerWaiting() int {
	sockets, err := notify.Sockets()
	if err == nil {
		err = self.Confine(worker.WaitingFiles, false)
	}
	if err == nil {
		err = worker.AnswerWaiting(sockets)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
