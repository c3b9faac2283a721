package guard

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Stamp returns a string that identifies the state of the files at paths. The
// string changes when one of the files is written or replaced, gets another
// mode or owner, or becomes inaccessible. An empty path is ignored.
func Stamp(paths ...string) string {
	var b strings.Builder
	for _, path := range paths {
		var st unix.Stat_t
		if path == "" {
			continue
		}
		if err := unix.Stat(path, &st); err != nil {
			fmt.Fprintf(&b, "%v;", err)
			continue
		}
		fmt.Fprintf(&b, "%d %d %d %d %o %d %d;", st.Dev, st.Ino, st.Size, st.Uid, st.Mode, st.Mtim.Nano(), st.Ctim.Nano())
	}
	return b.String()
}

// IsSettled reports whether the file at path is probably complete, because its
// last write was at least settleTime ago. For a missing file, IsSettled returns
// true. If the time of the last write is in the near future, IsSettled returns
// false, because the clock of a file server may be fast.
func IsSettled(path string, settleTime time.Duration) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) != nil || time.Since(time.Unix(st.Mtim.Unix())).Abs() >= settleTime
}
