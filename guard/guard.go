// Package guard opens the files that a process obeys (configuration), executes
// (programs) or keeps secret (keys), and the directories of its sockets. It
// refuses those that another user could have put there.
//
// It walks a path one component at a time and opens each relative to the one
// before. So what was checked is what is used: no path is looked up twice. It
// imports only x/sys and errs, because the privileged parent links it.
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

// Rule describes what a file must be like.
type Rule struct {
	What   string   // what the file is, for messages: "key file"
	Owners []uint32 // uids that may own it; nil: anyone
	Secret bool     // only its owner and group may read it
	Links  bool     // the file itself may be a symbolic link
	Create int      // flags of open(2) to write it: it is created if it is missing, and no other user has access; 0: it is read
	Run    bool     // it will be executed, which needs no read permission: opened with O_PATH
	Trust  *Trust   // who else may own and change it, or a directory above it; nil: any owner and any group
}

// Facts describes an opened file.
type Facts struct {
	Owner    uint32
	Size     int64
	Warnings []string // acceptable, but an administrator should know
}

// Open opens path if it is a regular file and rule allows it.
//
// It always refuses a file that every user may write. It refuses a directory on
// the way in which every user may replace entries: one that is writable without
// the sticky bit; for a secret, the sticky bit of its own directory does not
// help. And it refuses a symbolic link that was not made by root, this
// process's user or the owner of the directory that holds it.
//
// Errors are *errs.Error: NotFound, Denied (this process can't read the file),
// or Invalid (it can, but must not use it). The hint is the command that fixes
// it.
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

// Parent opens the directory of path with O_PATH, if rule allows it and
// everything above it. It does not look at path itself, which need not exist.
// Use name in dir from there on; real is the same path without links, for calls
// that take no descriptor. Errors are as those of Open.
func Parent(path string, rule Rule) (dir *os.File, real, name string, err error) {
	w := newWalk(path, rule)
	defer w.close()
	cut := strings.LastIndexByte(path, '/') + 1 // not cleaned: ".." applies after links are followed
	name = path[cut:]
	if name == "" || name == "." || name == ".." {
		return nil, "", "", w.refuse(errs.Invalid, "not a file name").WithHint("ls -ld %s  # use the path of a file in it", Quote(path))
	}
	if _, err := w.to(path[:cut], false); err != nil {
		return nil, "", "", err
	}
	dir = os.NewFile(uintptr(w.dir), w.dirName)
	real = filepath.Join(w.dirName, name)
	w.dirName = "" // the caller owns it now
	return dir, real, name, nil
}

// Configuration is the rule for configuration files. Their owner is checked
// later, because their content decides who may own them.
var Configuration = Rule{What: "configuration", Links: true}

// Accounts is the rule for lists of uids, which only root may change.
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

// judge checks the opened file itself. O_NONBLOCK at open and this check of the
// type keep a named pipe or a device from blocking or feeding the process.
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
	case w.rule.Secret && mode&0o027 != 0 && len(w.rule.Owners) > 0 && st.Uid != w.rule.Owners[0]: // the intended owner may read it through its group
		return Facts{}, w.refuse(errs.Invalid, "mode %04o lets other users access it", mode).
			WithHint("chown %d %s && chmod 0600 %[2]s", w.rule.Owners[0], quoted)
	case w.rule.Secret && mode&0o027 != 0, w.rule.Create != 0 && mode&0o077 != 0:
		return Facts{}, w.refuse(errs.Invalid, "mode %04o lets other users access it", mode).WithHint("chmod 0600 %s", quoted)
	case w.rule.Create != 0 && st.Nlink > 1:
		return Facts{}, w.refuse(errs.Invalid, "has %d hard links", st.Nlink).WithHint("ls -li %s  # remove the other links", quoted)
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

// irregular refuses what is not a regular file.
func (w *walk) irregular(path string) error {
	return w.refuse(errs.Invalid, "not a regular file").WithHint("ls -ld %s  # use the path of a file", Quote(path))
}

// oneOf joins uids with "or", each once.
func oneOf(uids []uint32) string {
	var words []string
	for _, u := range uids {
		if word := fmt.Sprint(u); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, " or ")
}

// Quote returns path quoted for a shell.
func Quote(path string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@%:,", r)
	}
	if path != "" && !strings.ContainsFunc(path, func(r rune) bool { return !plain(r) }) {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
