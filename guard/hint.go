package guard

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Hints are commands that can be pasted as a whole and fix the error they come
// with. Explanations follow a "#".

// Enter returns the start of a command that lets all users enter each directory
// on the absolute path; "" when this process can enter them. Below the first
// closed directory it can't check any, and treats them all as closed.
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

// EnterSecret returns the start of a command as Enter does, for the path of a
// secret. The directory that holds the secret is opened only to owner
// ("user:group" as for chown; an empty user stays) and its group, the
// directories above to all users.
func EnterSecret(path, owner string) string {
	if Enter(path) == "" {
		return ""
	}
	dir := filepath.Dir(path)
	return fmt.Sprintf("%schown %s %s && chmod 0710 %[3]s && ", Enter(dir), owner, Quote(dir))
}

// Replace returns the command that replaces path with what command writes to its
// %s. The file is replaced at once, for programs that follow it, and keeps its
// owner, group and mode.
func Replace(path, command string) string {
	return Beside(path, command) + " && mv " + Quote(path+".new") + " " + Quote(path)
}

// Beside returns a command that runs command, which writes to its %s. The
// output becomes a file beside path, with the owner, group and mode of path.
func Beside(path, command string) string {
	next := Quote(path + ".new")
	return "cp -p " + Quote(path) + " " + next + " && " + fmt.Sprintf(command, next)
}
