package guard

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Hints are commands, to be pasted whole and to mend what they come with; what is to be read stands
// behind a "#".

// Closed is the first directory on the absolute way path that this process can't enter; "" when it can enter all.
func Closed(path string) string {
	at := "/"
	for _, name := range split(filepath.Dir(path)) {
		var st unix.Stat_t
		at = filepath.Join(at, name)
		if errors.Is(unix.Stat(at+"/.", &st), unix.EACCES) {
			return at
		}
	}
	return ""
}

// Anew is the command that puts what command writes to its %s in the place of path: all at once, for who follows
// path, and with the owner, group and mode that the file has which is there.
func Anew(path, command string) string {
	next, same := Quote(path+".new"), ""
	var st unix.Stat_t
	if unix.Lstat(path, &st) == nil {
		same = fmt.Sprintf(" && chown %d:%d %s && chmod %04o %s", st.Uid, st.Gid, next, st.Mode&0o7777, next)
	}
	return fmt.Sprintf(command, next) + same + " && mv " + next + " " + Quote(path)
}
