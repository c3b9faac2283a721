//go:build failpoint

package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Variable names the point at which this process is to die: NAME, or NAME:N for the
// N-th time it is passed.
const Variable = "SCHEDCTLD_FAILPOINT"

var (
	name  string
	count int64 = 1
	seen  atomic.Int64
)

func init() {
	var n string
	name, n, _ = strings.Cut(os.Getenv(Variable), ":")
	if v, err := strconv.ParseInt(n, 10, 64); err == nil {
		count = v
	}
}

// Here dies at once, as by kill -9, when this is the chosen point.
func Here(point string) {
	if point == name && seen.Add(1) == count {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way: go no further
	}
}

// Env is what a step process needs in its environment to have the same points.
func Env() []string {
	if v, ok := os.LookupEnv(Variable); ok {
		return []string{Variable + "=" + v}
	}
	return nil
}
