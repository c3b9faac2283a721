package self

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rename sets the process name that ps and top show. The kernel keeps 15 bytes
// of it. Without Rename, a process that was executed by its descriptor would
// have a name like "32". Call it from an init function: Go runs init functions
// on the first thread, whose name is that of the process.
func Rename(name string) {
	text, err := unix.BytePtrFromString(name)
	if err == nil {
		_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(text)), 0, 0, 0)
	}
}
