package self

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rename sets the process name that ps and top show. The kernel keeps only the
// first 15 bytes. Without Rename, a process whose program was executed by
// descriptor would have a name like "32". Call Rename from an init function: Go
// runs init functions on the first thread, and the name of that thread is the
// name of the process.
func Rename(name string) {
	text, err := unix.BytePtrFromString(name)
	if err == nil {
		_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(text)), 0, 0, 0)
	}
}
