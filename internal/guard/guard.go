// Package guard opens configuration files, programs to be executed, secret
// keys, and the directories of sockets. It refuses files that another user
// could have put there.
//
// It walks a path one component at a time, and opens each component relative to
// the previous one. No path is looked up twice, so the file that is used is
// always the file that was checked. Apart from the standard library, the
// package imports only x/sys and errs, because it is linked into the privileged
// parent.
package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// Rule describes what a file must be like.
type Rule struct {
	Label       string   // what the file is, for messages: "key file"
	Owners      []uint32 // uids that may own the file; nil: any uid
	Secret      bool     // only its owner and group may read it
	Restrict    string   // makes a secret that other users can access readable for those who need it; "": chmod 0600
	AllowLink   bool     // the file itself may be a symbolic link
	CreateFlags int      // open(2) flags for writing the file, which is created with mode 0600 if missing; 0: open it for reading
	OpenFlags   int      // open(2) flags for a file that must exist; 0: open it for reading
	Execute     bool     // the file will be executed, which needs no read permission; it is opened with O_PATH
	Trust       *Trust   // which other users may own or change the file or a directory above it; nil: any owner and any group
}

type Facts struct {
	Owner    uint32
	Size     int64
	Warnings []string // acceptable facts that an administrator should know
}

// Open opens path if it is a regular file and rule allows it.
//
// Open always refuses a world-writable file. It also refuses a path through a
// world-writable directory without the sticky bit, because every user can
// replace entries there. The directory of a secret must not be world-writable,
// even with the sticky bit. Open also refuses a symbolic link that was created
// by anyone other than root, this process's user or the owner of the link's
// directory.
//
// Errors are *errs.Error: NotFound, Denied (this process can't read the file),
// or Invalid (the process can read the file, but must not use it). The hint, if
// any, is a command that fixes the problem or shows what to change.
func Open(path string, rule Rule) (*os.File, Facts, error) {
	w := newWalk(path, rule)
	defer w.close()
	fd, err := w.resolve(path, true)
	if err != nil {
		return nil, Facts{}, err
	}
	f := os.NewFile(uintptr(fd), path)
	facts, err := w.checkFile(fd, path)
	if err != nil {
		f.Close()
		return nil, Facts{}, err
	}
	return f, facts, nil
}

// Parent opens the directory that contains path with O_PATH, if rule allows
// that directory and all directories above it. Parent does not look at the file
// at path, which need not exist. Afterwards the caller must not use path, but
// must access the file as name, relative to dir. For system calls that take no
// descriptor, real is the file's path without symbolic links. Errors are the
// same as for Open.
func Parent(path string, rule Rule) (dir *os.File, real, name string, err error) {
	w := newWalk(path, rule)
	defer w.close()
	cut := strings.LastIndexByte(path, '/') + 1 // not cleaned, because ".." must be resolved after links are followed
	name = path[cut:]
	if name == "" || name == "." || name == ".." {
		return nil, "", "", w.refuse(errs.Invalid, "not a file name").WithHint("ls -ld %s  # use the path of a file in it", Quote(path))
	}
	if _, err := w.resolve(path[:cut], false); err != nil {
		return nil, "", "", err
	}
	dir = os.NewFile(uintptr(w.dir), w.dirName)
	real = filepath.Join(w.dirName, name)
	w.dirName = "" // the caller owns the descriptor now
	return dir, real, name, nil
}

// Configuration is the rule for configuration files. Their owner is checked
// later, because their content determines which users may own them.
var Configuration = Rule{Label: "configuration", AllowLink: true}

// Accounts is the rule for lists of uids. Only root may change such a list.
var Accounts = Rule{Label: "list of uids", AllowLink: true, Trust: &Trust{Owners: []uint32{}}}

// CheckFiles returns an error if any of the files violates rule or trust. It
// opens each file and closes it again.
func CheckFiles(files []string, rule Rule, trust Trust) error {
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

// checkFile checks the opened file itself. A named pipe or device can't block
// the process: Open uses O_NONBLOCK, and checkFile refuses such a file before
// anything is read from it.
func (w *walk) checkFile(fd int, path string) (Facts, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Facts{}, errs.Wrap(err, errs.Internal, "%s %s", w.rule.Label, path)
	}
	quoted, mode := Quote(path), st.Mode&0o7777
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return Facts{}, w.irregular(path)
	case w.rule.Owners != nil && !slices.Contains(w.rule.Owners, st.Uid):
		err := w.refuse(errs.Invalid, "owned by uid %d, must be owned by uid %s", st.Uid, joinUIDs(w.rule.Owners))
		return Facts{}, w.withOwnerHint(err, &st, path, "")
	case w.rule.Secret && mode&0o027 != 0 && w.rule.Restrict != "":
		return Facts{}, w.refuse(errs.Invalid, "mode %04o lets other users access it", mode).WithHint("%s", w.rule.Restrict)
	case w.rule.Secret && mode&0o027 != 0 && len(w.rule.Owners) > 0 && st.Uid != w.rule.Owners[0]: // the intended owner may have only group access, which chmod 0600 alone would remove
		return Facts{}, w.refuse(errs.Invalid, "mode %04o lets other users access it", mode).WithHint("chown %d %s && chmod 0600 %[2]s", w.rule.Owners[0], quoted)
	case w.rule.Secret && mode&0o027 != 0, w.rule.CreateFlags != 0 && mode&0o077 != 0:
		return Facts{}, w.refuse(errs.Invalid, "mode %04o lets other users access it", mode).WithHint("chmod 0600 %s", quoted)
	case w.rule.CreateFlags != 0 && st.Nlink > 1:
		return Facts{}, w.refuse(errs.Invalid, "has %d hard links", st.Nlink).WithHint("ls -li %s  # remove the other links", quoted)
	case mode&0o002 != 0:
		return Facts{}, w.refuse(errs.Invalid, "mode %04o lets other users write it", mode).WithHint("chmod %s %s", w.chmodMode(&st), quoted)
	}
	if w.rule.Trust != nil {
		if err := w.checkTrust(&st, "it", path, false); err != nil {
			return Facts{}, err
		}
	}
	facts := Facts{Owner: st.Uid, Size: st.Size}
	if w.rule.Secret && w.reachable {
		facts.Warnings = append(facts.Warnings, fmt.Sprintf("%s %s: every user can enter its directory", w.rule.Label, path))
	}
	return facts, nil
}

// irregular returns the error for a path that is not a regular file.
func (w *walk) irregular(path string) error {
	return w.refuse(errs.Invalid, "not a regular file").WithHint("ls -ld %s  # use the path of a file", Quote(path))
}

// joinUIDs joins uids with "or", and drops duplicates.
func joinUIDs(uids []uint32) string {
	var words []string
	for _, u := range uids {
		if word := fmt.Sprint(u); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, " or ")
}

// UseTrialFiles prepares an attempt to open or create the files at paths. Where only
// the file is missing, it changes the path to that of a file beside it: at path
// itself, another process may create the file at any time. The returned function
// removes those files.
func UseTrialFiles(paths ...*string) (remove func()) {
	var trials []string
	for _, path := range paths {
		_, missing := os.Lstat(*path)
		if _, err := os.Stat(filepath.Dir(*path)); filepath.IsAbs(*path) && missing != nil && err == nil {
			*path += trialSuffix
			trials = append(trials, *path)
		}
	}
	return func() {
		for _, path := range trials {
			os.Remove(path)
		}
	}
}

const trialSuffix = ".schedrestd-check"

// CreationError returns err, about a file at path that can't be created or
// opened for writing, with a hint. It names the configured file, not the one
// that UseTrialFiles chose.
func CreationError(path string, err error) error {
	path = strings.TrimSuffix(path, trialSuffix)
	dir, uid, hint := filepath.Dir(path), os.Geteuid(), errs.HintOf(err)
	_, statErr := os.Stat(dir)
	switch {
	case hint != "":
	case statErr != nil:
		hint = fmt.Sprintf("mkdir -m 0700 %[1]s && chown %[2]d %[1]s", Quote(dir), uid)
	case strings.HasSuffix(err.Error(), unix.EROFS.Error()):
		hint = "findmnt -T " + Quote(dir) + "  # a systemd unit may write only to its directory in /var/log, such as /var/log/schedrestd, and to ReadWritePaths= of a drop-in"
	default:
		hint = fmt.Sprintf("ls -ld %s %s  # uid %d must be able to create and write the file; a running gateway has no access to files of other users", Quote(dir), Quote(path), uid)
	}
	return errs.New(errs.KindOf(err), "%s", strings.ReplaceAll(err.Error(), trialSuffix, "")).WithHint("%s", hint)
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
