package guard

import (
	"fmt"
	"strings"

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
