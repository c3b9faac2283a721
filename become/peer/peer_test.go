package peer

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/become"
	"schedrestd/internal/socket/sockettest"
)

func TestOf(t *testing.T) {
	path := filepath.Join(sockettest.Dir(t), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := Of(s.(syscall.Conn))
	want := become.Ucred{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), PID: int32(os.Getpid())}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := Of(l.(syscall.Conn)); err != nil {
		t.Logf("a listener: %v", err) // for a listener, the kernel returns the credentials of the process that created it
	}
}
