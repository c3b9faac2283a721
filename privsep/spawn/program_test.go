package spawn

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/security"
)

// TestWorkerCanNotReadItsProgram checks that a worker that root starts can
// execute its program but not read it, whatever mode the build gave the
// program.
func TestWorkerCanNotReadItsProgram(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user executes a file of their own")
	}
	const worker = 30003
	for _, mode := range []os.FileMode{0o755, 0o700, 0o711, 0o555, 0o750} {
		t.Run(mode.String(), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "program")
			if err := os.WriteFile(path, []byte("#!/bin/true\n"), mode); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			f, err := OpenProgram("worker", path, WorkerName, security.Identity{UID: worker, GID: worker}, true, worker)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			var st unix.Stat_t
			if err := unix.Fstat(int(f.Fd()), &st); err != nil {
				t.Fatal(err)
			}
			if st.Uid != 0 || st.Mode&0o7777 != 0o711 {
				t.Errorf("uid %d, mode %04o; want root's, 0711", st.Uid, st.Mode&0o7777)
			}
		})
	}
}

// TestProgramIsNoLink checks that without root, too, a link is not followed to a
// program elsewhere.
func TestProgramIsNoLink(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	if err := os.Symlink("/proc/self/exe", path); err != nil {
		t.Fatal(err)
	}
	f, err := OpenProgram("worker", path, "", security.Identity{}, false)
	if errs.KindOf(err) != errs.Invalid {
		f.Close()
		t.Errorf("got %v", err)
	}
}
