package closeonexec

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestMark checks both ways to mark descriptors, and that the standard ones stay
// as they are.
func TestMark(t *testing.T) {
	for name, mark := range map[string]func() error{"at once": Mark, "each": markEach} {
		fd, err := unix.FcntlInt(1, unix.F_DUPFD, 100)
		if err != nil {
			t.Fatal(err)
		}
		if err := mark(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for of, want := range map[int]int{1: 0, fd: unix.FD_CLOEXEC} {
			if got, err := unix.FcntlInt(uintptr(of), unix.F_GETFD, 0); err != nil || got != want {
				t.Errorf("%s: descriptor %d has the flags %d, want %d: %v", name, of, got, want, err)
			}
		}
		unix.Close(fd)
	}
}
