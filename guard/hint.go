package guard

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Hints are commands. A hint can be pasted as a whole, and fixes the error that
// it comes with. Explanations follow a "#".

// Enter returns the start of a command that lets all users enter the
// directories on the absolute path; "" when this process can enter all of them.
// The command names the first directory that this process can't enter and,
// since Enter can't check what is below it, all further directories on the
// path.
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

// EnterSecret returns the start of a command like Enter, for the path of a
// secret. The command gives the secret's directory to owner, and lets only that
// user and group enter it. It lets all users enter the directories above. owner
// has the form "user:group" as for chown; an empty user leaves the owner
// unchanged.
func EnterSecret(path, owner string) string {
	if Enter(path) == "" {
		return ""
	}
	dir := filepath.Dir(path)
	return fmt.Sprintf("%schown %s %s && chmod 0710 %[3]s && ", Enter(dir), owner, Quote(dir))
}

// Replace returns a command that replaces the file at path in one step, so that
// programs that watch the file never see half of it. The file keeps its owner,
// group and mode. Its new content is written by command, in which %s stands for
// the file to write.
func Replace(path, command string) string {
	return Beside(path, command) + " && mv " + Quote(path+".new") + " " + Quote(path)
}

// Beside returns a command that creates a file beside path, with the owner,
// group and mode of path. The content is written by command, in which %s stands
// for the file to write.
func Beside(path, command string) string {
	next := Quote(path + ".new")
	return "cp -p " + Quote(path) + " " + next + " && " + fmt.Sprintf(command, next)
}
