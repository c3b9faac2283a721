package worker

import (
	"os"
	"os/signal"

	"schedrestd/ipc"
	"schedrestd/security"
)

// anchorFiles is how many descriptors an anchor may have open: its own, and the runtime's.
const anchorFiles = 16

// Anchor waits until the parent ends, or has no more use for it, and gives its exit status. It is the first
// process of the namespace that workers and keeper live in, and with it all of them end.
func Anchor() int {
	signal.Ignore()
	if err := security.Confine(anchorFiles); err != nil {
		return 1
	}
	line := os.NewFile(ipc.WorkerFD, "line to the parent")
	_, _ = line.Read(make([]byte, 1))
	return 0
}
