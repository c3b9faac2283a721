//go:build failpoint

package failpoint

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// Variable is the name of an environment variable that selects the point at
// which this process kills itself. Its value is NAME, or NAME:N to kill the
// process when it reaches that point for the N-th time.
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

// Here kills this process at once, like kill -9, if Variable selects this
// point.
func Here(point string) {
	if point == name && seen.Add(1) == count {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // wait for the signal
	}
}

// Env returns the environment variable that selects, in a step process, the
// failpoint of this process.
func Env() []string {
	if v, ok := os.LookupEnv(Variable); ok {
		return []string{Variable + "=" + v}
	}
	return nil
}
