package stdio

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestStaysBlocking checks that the flags of standard streams do not
// change, because other processes may share them.
func TestStaysBlocking(t *testing.T) {
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	defer w.Close()
	fds := []int{int(r.Fd()), int(w.Fd())} // Fd makes them blocking
	s := New(fds[0], fds[1])
	if n, err := s.Write([]byte("abc")); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	buf := make([]byte, 9)
	if n, err := s.Read(buf); n != 3 || err != nil {
		t.Fatal(n, err)
	}
	for _, fd := range fds {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
			t.Errorf("descriptor %d has flags %#x, %v", fd, flags, err)
		}
	}
}
