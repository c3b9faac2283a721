package sockettest

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDir checks that a socket can be made whatever the length of $TMPDIR is,
// and that $TMPDIR is used if it is short.
func TestDir(t *testing.T) {
	short, err := os.MkdirTemp("/tmp", "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	for n := range 120 {
		tmp := filepath.Join(short, strings.Repeat("x", n))
		if err := os.MkdirAll(tmp, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", tmp)
		dir := Dir(t)
		ln, err := net.Listen("unix", filepath.Join(dir, strings.Repeat("s", room-len("/d/"))))
		if err != nil {
			t.Fatal(err)
		}
		ln.Close()
		if n == 1 && !strings.HasPrefix(dir, tmp+"/") {
			t.Errorf("%s is not in $TMPDIR %s", dir, tmp)
		}
	}
}
