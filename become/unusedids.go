package become

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// UnusedIDs returns ids that no user has, for a process that no other may
// signal or trace: the best one first, then one for a user namespace of 65536
// ids, from a range for temporary ids. It is empty when the kernel has no
// random numbers.
func UnusedIDs() []uint32 {
	var b [4]byte
	if _, err := unix.Getrandom(b[:], 0); err != nil {
		return nil
	}
	random := binary.NativeEndian.Uint32(b[:])
	return []uint32{0x7ffe_0000 + random%0xffff, 61184 + random%(65519-61184)}
}
