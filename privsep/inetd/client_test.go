package inetd

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestIsTerminal checks that IsTerminal recognises a terminal, and does not
// change the flags of the file. Other processes may share these flags.
func TestIsTerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals: %v", err)
	}
	defer terminal.Close()
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	read, write := os.NewFile(uintptr(fds[0]), "standard input"), os.NewFile(uintptr(fds[1]), "pipe")
	defer read.Close()
	defer write.Close()
	if !IsTerminal(terminal) || IsTerminal(read) {
		t.Errorf("a terminal: %t, a pipe: %t", IsTerminal(terminal), IsTerminal(read))
	}
	if flags, err := unix.FcntlInt(uintptr(fds[0]), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
		t.Errorf("flags %o, %v: it was made blocking", flags, err)
	}
}
