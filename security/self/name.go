package self

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rename gives the process the name that ps and top show, of which 15 bytes are kept: executed by its descriptor it would
// be "32". Call it from an init function, which Go runs on the first thread: the name of that one is the process's.
func Rename(name string) {
	text, err := unix.BytePtrFromString(name)
	if err == nil {
		_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(text)), 0, 0, 0)
	}
}
