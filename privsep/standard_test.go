package privsep

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestIsTerminal: to ask changes nothing for those who share the file.
func TestIsTerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no terminals: %v", err)
	}
	defer terminal.Close()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	if !IsTerminal(terminal) || IsTerminal(read) {
		t.Errorf("a terminal: %t, a pipe: %t", IsTerminal(terminal), IsTerminal(read))
	}
	fd, err := number(read)
	if err != nil {
		t.Fatal(err)
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
		t.Errorf("flags %o, %v: it was made blocking", flags, err)
	}
}
