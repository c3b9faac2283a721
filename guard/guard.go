// Package guard opens the files that a process obeys (configuration), executes
// (programs) or keeps secret (keys), and the directories of its sockets, and refuses
// those that somebody else could have put there.
//
// A path is walked one component at a time, each opened relative to the one
// before, so that what was judged is what is used: no path is looked up twice.
// It imports x/sys and errs alone, because the privileged parent links it.
package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
)

// Rule says what a file must be like.
type Rule struct {
	What   string   // what the file is, for messages: "key file"
	Owners []uint32 // uids that may own it; nil: anyone
	Secret bool     // nobody but its owner and group may read it
	Links  bool     // the file itself may be a symbolic link
	Run    bool     // it is to be executed, which takes no right to read it: opened with O_PATH
	Trust  *Trust   // who else may own and change it, or a directory above it; nil: any owner and any group
}

// Facts is what an opened file was found to be.
type Facts struct {
	Owner    uint32
	Size     int64
	Warnings []string // acceptable, but an administrator should know
}

// Open opens path when it is a regular file and rule allows it.
//
// Always refused: a file that everybody may write; a directory on the way in which
// everybody may replace entries (it can be written and has no sticky bit; for
// a secret, the sticky bit of its own directory does not help); a link on the
// way made by somebody else than root, this process's user or the owner of the
// directory that holds it.
//
// Errors are *errs.Error: NotFound, Denied (it can't be read by this process), or
// Invalid (it can be, but must not be used); the hint is the command that mends it.
func Open(path string, rule Rule) (*os.File, Facts, error) {
	w := newWalk(path, rule)
	defer w.close()
	fd, err := w.to(path, true)
	if err != nil {
		return nil, Facts{}, err
	}
	f := os.NewFile(uintptr(fd), path)
	facts, err := w.judge(fd, path)
	if err != nil {
		f.Close()
		return nil, Facts{}, err
	}
	return f, facts, nil
}

// Parent opens (O_PATH) the directory of path when rule allows it and everything above
// it. path itself is not looked at, and need not exist. Use name in dir from there
// on; real is the same without links, for calls that take no descriptor. Errors are
// as those of Open.
func Parent(path string, rule Rule) (dir *os.File, real, name string, err error) {
	w := newWalk(path, rule)
	defer w.close()
	cut := strings.LastIndexByte(path, '/') + 1 // not cleaned: ".." counts after links are followed
	name = path[cut:]
	if name == "" || name == "." || name == ".." {
		return nil, "", "", w.refuse(errs.Invalid, "not the name of a file").WithHint("ls -ld %s  # name a file in it", Quote(path))
	}
	if _, err := w.to(path[:cut], false); err != nil {
		return nil, "", "", err
	}
	dir = os.NewFile(uintptr(w.dir), w.dirName)
	real = filepath.Join(w.dirName, name)
	w.dirName = "" // the caller's now
	return dir, real, name, nil
}

// Configuration is the rule for configuration files. Whose they may be is judged later, by what they say.
var Configuration = Rule{What: "configuration", Links: true}

// Accounts is the rule for lists of uids, which root alone may change.
var Accounts = Rule{What: "list of uids", Links: true, Trust: &Trust{Owners: []uint32{}}}

// Judge opens each of files by rule and trust, and closes it again.
func Judge(files []string, rule Rule, trust Trust) error {
	rule.Trust = &trust
	for _, path := range files {
		f, _, err := Open(path, rule)
		if err != nil {
			return err
		}
		f.Close()
	}
	return nil
}

// judge looks at the opened file itself: O_NONBLOCK at open and this test of its
// type stop a named pipe or a device from hanging or feeding the process.
func (w *walk) judge(fd int, path string) (Facts, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Facts{}, errs.Wrap(err, errs.Internal, "%s %s", w.rule.What, path)
	}
	quoted, mode := Quote(path), st.Mode&0o7777
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return Facts{}, w.irregular(path)
	case w.rule.Owners != nil && !slices.Contains(w.rule.Owners, st.Uid):
		err := w.refuse(errs.Invalid, "owned by uid %d, must be owned by uid %s", st.Uid, oneOf(w.rule.Owners))
		return Facts{}, w.give(err, &st, path, "")
	case w.rule.Secret && mode&0o027 != 0 && len(w.rule.Owners) > 0 && st.Uid != w.rule.Owners[0]: // who may read it by its group
		return Facts{}, w.refuse(errs.Invalid, "mode %04o lets other users access it", mode).
			WithHint("chown %d %s && chmod 0600 %[2]s", w.rule.Owners[0], quoted)
	case w.rule.Secret && mode&0o027 != 0:
		return Facts{}, w.refuse(errs.Invalid, "mode %04o lets other users access it", mode).WithHint("chmod 0600 %s", quoted)
	case mode&0o002 != 0:
		return Facts{}, w.refuse(errs.Invalid, "mode %04o lets other users write it", mode).WithHint("chmod %s %s", w.noWriting(&st), quoted)
	}
	if w.rule.Trust != nil {
		if err := w.check(&st, "it", path, false); err != nil {
			return Facts{}, err
		}
	}
	facts := Facts{Owner: st.Uid, Size: st.Size}
	if w.rule.Secret && w.reachable {
		facts.Warnings = append(facts.Warnings, fmt.Sprintf("%s %s: every user can enter its directory", w.rule.What, path))
	}
	return facts, nil
}

// irregular refuses what is no file.
func (w *walk) irregular(path string) error {
	return w.refuse(errs.Invalid, "not a regular file").WithHint("ls -ld %s  # name a file", Quote(path))
}

// oneOf says uids, each once.
func oneOf(uids []uint32) string {
	var words []string
	for _, u := range uids {
		if word := fmt.Sprint(u); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, " or ")
}

// Quote writes path so that it can be pasted into a shell.
func Quote(path string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@%:,", r)
	}
	if path != "" && !strings.ContainsFunc(path, func(r rune) bool { return !plain(r) }) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
