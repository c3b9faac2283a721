package guard

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Hints are commands. A hint can be pasted as a whole, and fixes the error that
// it comes with. Explanations follow a "#".

// EnterCommand returns the start of a command that lets all users enter the
// directories on the absolute path; "" when this process can enter all of them.
// The command names the first directory that this process can't enter and,
// since EnterCommand can't check what is below it, all further directories on
// the path.
func EnterCommand(path string) string {
	var closed string
	dir := "/"
	for _, name := range split(filepath.Dir(path)) {
		var st unix.Stat_t
		dir = filepath.Join(dir, name)
		if closed != "" || errors.Is(unix.Stat(dir+"/.", &st), unix.EACCES) {
			closed += " " + Quote(dir)
		}
	}
	if closed == "" {
		return ""
	}
	return "chmod a+x" + closed + " && "
}

// EnterSecretCommand returns the start of a command like EnterCommand, for the
// path of a secret. The command gives the secret's directory to owner, and lets
// only that user and group enter it. It lets all users enter the directories
// above. owner has the form "user:group" as for chown; an empty user leaves the
// owner unchanged.
func EnterSecretCommand(path, owner string) string {
	if EnterCommand(path) == "" {
		return ""
	}
	dir := filepath.Dir(path)
	return fmt.Sprintf("%schown %s %s && chmod 0710 %[3]s && ", EnterCommand(dir), owner, Quote(dir))
}

// ReplaceCommand returns a command that replaces the file at path in one step,
// so that programs that watch the file never see half of it. The file keeps its
// owner, group and mode. Its new content is written by command, in which %s
// stands for the file to write.
func ReplaceCommand(path, command string) string {
	return BesideCommand(path, command) + " && mv " + Quote(path+".new") + " " + Quote(path)
}

// BesideCommand returns a command that creates a file beside path, with the
// owner, group and mode of path. The content is written by command, in which %s
// stands for the file to write.
func BesideCommand(path, command string) string {
	next := Quote(path + ".new")
	return "cp -p " + Quote(path) + " " + next + " && " + fmt.Sprintf(command, next)
}
