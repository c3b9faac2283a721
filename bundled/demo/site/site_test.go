package site

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/internal/socket/sockettest"
)

// TestLoopback checks that the configurations of the demo name only addresses of
// the loopback interface: the daemons listen on these.
func TestLoopback(t *testing.T) {
	s := Site{Dir: t.TempDir(), Node: "head", Owner: "alice", Controller: 6817, Accounting: 6819}
	hosts := 0
	for line := range strings.Lines(s.clusterText() + s.dbdText()) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if !strings.HasSuffix(name, "Host") {
			continue
		}
		hosts++
		address := strings.TrimSuffix(value[strings.Index(value, "(")+1:], ")")
		if a, err := netip.ParseAddr(address); err != nil || !a.IsLoopback() {
			t.Errorf("%s: %v", line, err)
		}
	}
	if hosts != 3 {
		t.Errorf("%d hosts, want 3", hosts)
	}
}

// TestModes checks that other users can enter only the directory with the sockets,
// can list none, and can't read the key.
func TestModes(t *testing.T) {
	dir := sockettest.Dir(t)
	s, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{filepath.Join(dir, "etc"): 0o700, filepath.Join(dir, "state"): 0o700, filepath.Join(dir, "log"): 0o700,
		filepath.Join(dir, "run"): 0o711, s.Key(): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v", path, info.Mode(), want)
		}
	}
}
