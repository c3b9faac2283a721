package guard

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Hints are commands that a user can paste as a whole. Most of them fix the
// error; the others show what to change. Explanations follow a "#".

// EnterCommand returns the beginning of a shell command that lets all users
// enter the directories above the file at path, which must be absolute. If this
// process can already enter all of these directories, EnterCommand returns "".
// The command changes the first directory that this process can't enter. It
// also changes the directories between that one and the file, because
// EnterCommand can't check them.
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

// EnterSecretCommand works like EnterCommand, but path names a secret. The
// command gives the secret's directory to owner, and lets only that user and
// group enter it. All users may enter the directories above that one. The
// argument owner has the form "user:group", as for chown. If the user is empty,
// the directory's user remains unchanged.
func EnterSecretCommand(path, owner string) string {
	if EnterCommand(path) == "" {
		return ""
	}
	dir := filepath.Dir(path)
	return fmt.Sprintf("%schown %s %s && chmod 0710 %[3]s && ", EnterCommand(dir), owner, Quote(dir))
}
