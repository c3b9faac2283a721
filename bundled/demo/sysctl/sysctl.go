// Package sysctl sets kernel parameters for the duration of a test.
package sysctl

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Set changes the kernel parameter with this name, such as fs.suid_dumpable,
// until the test ends. If it can't change the parameter, Set skips the test. A
// parameter applies to the whole machine, so tests that set the same parameter
// run one after another.
func Set(t testing.TB, name, value string) {
	t.Helper()
	lock, err := os.OpenFile(filepath.Join("/run", "schedrestd-test-"+name), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Skipf("set %s: %v", name, err)
	}
	path := "/proc/sys/" + strings.ReplaceAll(name, ".", "/")
	before, err := os.ReadFile(path)
	t.Cleanup(func() {
		_ = os.WriteFile(path, before, 0)
		lock.Close()
	})
	if err == nil {
		err = os.WriteFile(path, []byte(value), 0)
	}
	if err != nil {
		t.Skipf("set %s: %v", name, err)
	}
}
