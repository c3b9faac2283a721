package guard

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Stamp tells one state of the files at paths from another: what it returns changes when one of them is
// written, replaced, or has other rights, and when it can no longer be looked at. "" is no path.
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

// Rests tells whether nobody has written the file at path for long, so that it is likely whole. One that is not there
// rests. A time that is as near in the future is one of a file server whose clock is fast.
func Rests(path string, long time.Duration) bool {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return true
	}
	return time.Since(time.Unix(st.Mtim.Unix())).Abs() >= long
}
