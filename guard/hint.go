package guard

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Hints are commands, to be pasted whole and to mend what they come with; what is to be read stands
// behind a "#".

// Enter is the beginning of a command after which everybody can enter each directory on the absolute way path; ""
// when this process can. Below the first one that it can't enter it sees none, and takes them all for closed.
func Enter(path string) string {
	var closed string
	at := "/"
	for _, name := range split(filepath.Dir(path)) {
		var st unix.Stat_t
		at = filepath.Join(at, name)
		if closed != "" || errors.Is(unix.Stat(at+"/.", &st), unix.EACCES) {
			closed += " " + Quote(at)
		}
	}
	if closed == "" {
		return ""
	}
	return "chmod a+x" + closed + " && "
}

// EnterSecret is Enter on the way to a secret: the directory that has it is opened to owner ("user:group", as chown has
// it; an empty user stays) and group alone, and the ones above it to everybody.
func EnterSecret(path, owner string) string {
	if Enter(path) == "" {
		return ""
	}
	dir := filepath.Dir(path)
	return fmt.Sprintf("%schown %s %s && chmod 0710 %[3]s && ", Enter(dir), owner, Quote(dir))
}

// Anew is the command that puts what command writes to its %s in the place of path: all at once, for who follows
// path, and with the owner, group and mode that the file has which is there.
func Anew(path, command string) string {
	return Beside(path, command) + " && mv " + Quote(path+".new") + " " + Quote(path)
}

// Beside is the command that puts what command writes to its %s beside path, as Anew does it.
func Beside(path, command string) string {
	next, same := Quote(path+".new"), ""
	var st unix.Stat_t
	if unix.Lstat(path, &st) == nil {
		same = fmt.Sprintf(" && chown %d:%d %s && chmod %04o %s", st.Uid, st.Gid, next, st.Mode&0o7777, next)
	}
	return fmt.Sprintf(command, next) + same
}
