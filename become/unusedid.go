package become

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// unusedRanges lists ranges of ids that systemd documents as unused. Other
// documented ranges belong to users, temporary users, containers, or images of
// other systems, whose files and processes any user may control. The ids of the
// first range are 32 bits long. The others are for user namespaces that have
// only 65536 ids. Source: "Users, Groups, UIDs and GIDs on systemd Systems".
var unusedRanges = []struct{ first, last uint32 }{{0x7fff_0000, 0x7fff_fffe}, {60706, 61183}, {65520, 65533}}

// UnusedID returns an id that no user has, as far as this process can know
// without asking the user database. A process that runs under it can't be
// signalled or traced by other users' processes.
func UnusedID() (uint32, error) {
	var b [4]byte
	if _, err := unix.Getrandom(b[:], 0); err != nil {
		return 0, errs.Wrap(err, errs.Unavailable, "choose an unused id")
	}
	random := binary.NativeEndian.Uint32(b[:])
	for _, r := range unusedRanges {
		id := r.first + random%(r.last-r.first+1)
		if mapContains("/proc/self/uid_map", id) && mapContains("/proc/self/gid_map", id) {
			return id, nil
		}
	}
	return 0, errs.New(errs.Unavailable, "this user namespace has no unused id").
		WithHint("cat /proc/self/uid_map /proc/self/gid_map  # map 65536 ids, or start as the serving user")
}

// ConfigCache is the directory in which schedrestd-config keeps copies of a
// configuration that it fetched from a controller.
const ConfigCache = "/var/cache/schedrestd-config"

// ReaderID returns the ids under which schedrestd-config runs if root starts the
// gateway: the owner and group of ConfigCache, if root has given this directory
// to a user of its own, and otherwise an unused id.
func ReaderID() (uid, gid uint32, err error) { return readerID(ConfigCache) }

func readerID(dir string) (uid, gid uint32, err error) {
	var st unix.Stat_t
	if unix.Lstat(dir, &st) == nil && belongsToUser(&st) {
		return st.Uid, st.Gid, nil
	}
	uid, err = UnusedID()
	return uid, uid, err
}

// belongsToUser reports whether st is that of a directory that only a user of
// its own can enter. In a container, a directory of the machine may show an
// overflow id, which other users share.
func belongsToUser(st *unix.Stat_t) bool {
	return st.Mode == unix.S_IFDIR|0o700 && st.Uid != 0 && Ucred{UID: st.Uid, GID: st.Gid}.Verify() == nil
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
