package privsep

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"schedrestd/internal/socket/sockettest"
)

func await(t *testing.T, event string, happened func() bool) {
	t.Helper()
	pause := time.Millisecond
	for end := time.Now().Add(longest()); !happened(); time.Sleep(pause) {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", event)
		}
		pause = min(pause*5/4+1, 50*time.Millisecond) // because checking costs processor time
	}
}

// suspend stops a process. It waits until all threads of the process have
// stopped, because kill(2) returns earlier.
func suspend(t *testing.T, pid int) {
	t.Helper()
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	await(t, "all threads have stopped", func() bool {
		dir := fmt.Sprintf("/proc/%d/task", pid)
		threads, _ := os.ReadDir(dir)
		return len(threads) > 0 && !slices.ContainsFunc(threads, func(thread os.DirEntry) bool {
			stat, err := os.ReadFile(filepath.Join(dir, thread.Name(), "stat"))
			return err == nil && !strings.Contains(string(stat), ") T ")
		})
	})
}

// sharedDir returns a directory of this test that other users can enter.
func sharedDir(t *testing.T) string {
	t.Helper()
	return socketDir(t, sockettest.Dir(t), nil)
}
