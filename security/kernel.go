package security

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// KernelSince reports whether the kernel has this version or a later one.
func KernelSince(major, minor int) bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	var a, b int
	_, _ = fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &a, &b)
	return a > major || a == major && b >= minor
}
