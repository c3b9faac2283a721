package become

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
)

// UnusedID returns an id that no user has. A process that runs under it can't
// be signalled or traced by other users' processes. If the user namespace has
// only 65536 ids, UnusedID returns one from the range that systemd uses for
// temporary users.
func UnusedID() (uint32, error) {
	var b [4]byte
	if _, err := unix.Getrandom(b[:], 0); err != nil {
		return 0, errs.Wrap(err, errs.Unavailable, "choose an unused id")
	}
	random := binary.NativeEndian.Uint32(b[:])
	for _, id := range []uint32{0x7ffe_0000 + random%0xffff, 61184 + random%(65519-61184)} {
		if mapContains("/proc/self/uid_map", id) && mapContains("/proc/self/gid_map", id) {
			return id, nil
		}
	}
	return 0, errs.New(errs.Unavailable, "this user namespace has no unused id").
		WithHint("cat /proc/self/uid_map /proc/self/gid_map  # map 65536 ids, or start as the serving user")
}

// mapContains reports whether the id map in file contains id.
func mapContains(file string, id uint32) bool {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		var first, outside, count uint32
		if _, err := fmt.Sscan(line, &first, &outside, &count); err == nil && id >= first && id-first < count {
			return true
		}
	}
	return false
}
