package privsep

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"schedrestd/ipc"
	"schedrestd/privsep/identity"
	"schedrestd/security"
)

func await(t *testing.T, event string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", event)
		}
	}
}

// suspend stops a process. It waits until all threads of the process have
// stopped, because kill(2) returns earlier.
func suspend(t *testing.T, pid int) {
	t.Helper()
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	await(t, "all threads have stopped", func() bool {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		return len(threads) > 0 && !slices.ContainsFunc(threads, func(path string) bool {
			stat, err := os.ReadFile(path)
			return err == nil && !strings.Contains(string(stat), ") T ")
		})
	})
}

// sharedDir returns a directory of this test that other users can enter.
func sharedDir(t *testing.T) string {
	t.Helper()
	return socketDir(t, t.TempDir(), nil)
}

// TestUnixSocketOptions checks that UNIX sockets belong to the service user. If
// each user is served under their own identity, the sockets must belong to
// root.
func TestUnixSocketOptions(t *testing.T) {
	t.Parallel()
	group := uint32(44)
	for name, tt := range map[string]struct {
		config   testConfig
		mode     fs.FileMode
		uid, gid uint32
	}{
		"a service":   {testConfig{SocketMode: 0o600}, 0o600, 7, 8},
		"a group":     {testConfig{SocketMode: 0o660, SocketGroup: &group}, 0o660, 7, 44},
		"become_user": {testConfig{SocketMode: 0o666, Switches: ipc.Switches{BecomeUser: true}}, 0o666, 0, 0},
	} {
		o := tt.config.config().listenOptions(identity.Service{Identity: security.Identity{UID: 7, GID: 8}}).Unix
		if o.Mode != tt.mode || o.Owner.UID != tt.uid || o.Owner.GID != tt.gid {
			t.Errorf("%s: mode %o of %+v", name, o.Mode, *o.Owner)
		}
	}
}
