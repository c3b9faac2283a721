package guard

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// maxLinks is the maximum number of symbolic links in one path, the same as in
// Linux.
const maxLinks = 40

// walk opens a path from the root down. The dir field is the current
// directory of the walk, not of the process.
type walk struct {
	rule      Rule
	refuse    func(errs.Kind, string, ...any) *errs.Error
	dir       int
	dirName   string
	dirStat   unix.Stat_t
	reachable bool // every user can enter all directories so far
	links     int
}

func newWalk(path string, rule Rule) walk {
	return walk{rule: rule, refuse: func(k errs.Kind, format string, args ...any) *errs.Error {
		return errs.New(k, "%s %s: %s", rule.Label, path, fmt.Sprintf(format, args...))
	}}
}

// resolve walks to path. If file is true, it returns a descriptor of the file
// at path. Otherwise path is a directory: resolve checks it and makes it the
// walk's current directory.
func (w *walk) resolve(path string, file bool) (int, error) {
	if !filepath.IsAbs(path) {
		cwd, err := os.Getwd()
		if err != nil {
			return -1, w.explain(err)
		}
		path = cwd + "/" + path // not cleaned, because ".." must be resolved after links are followed
	}
	if err := w.restart(); err != nil {
		return -1, err
	}
	for components := split(path); len(components) > 0; {
		fd, target, err := w.step(components[0], file && len(components) == 1)
		if err != nil || fd >= 0 {
			return fd, err
		}
		components = append(split(target), components[1:]...)
		if strings.HasPrefix(target, "/") {
			if err := w.restart(); err != nil {
				return -1, err
			}
		}
	}
	if file {
		return -1, w.irregular(path)
	}
	var dirOwners []uint32
	if w.rule.Trust != nil {
		dirOwners = w.rule.Trust.DirOwners
	}
	return -1, w.checkDir(w.rule.Secret, dirOwners...)
}

// openPath opens name with O_PATH, which needs no read permission. If name is a
// symbolic link, openPath opens the link itself.
func (w *walk) openPath(name string) (fd int, st unix.Stat_t, err error) {
	fd, err = unix.Openat(w.dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, st, err
	}
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return -1, st, err
	}
	return fd, st, nil
}

// step opens name in the walk's current directory. If name is a directory and
// last is false, it becomes the current directory. If last is true, step
// returns a descriptor of the file. If name is a link, step returns its target.
func (w *walk) step(name string, last bool) (file int, target string, err error) {
	path := filepath.Join(w.dirName, name)
	fd, st, err := w.openPath(name)
	missing := errors.Is(err, unix.ENOENT)
	// A secret that is missing in a sticky directory was not removed by another
	// user. Kubernetes mounts volumes as such directories.
	if err := w.checkDir(last && w.rule.Secret && (!missing || w.rule.CreateFlags != 0)); err != nil {
		unix.Close(fd)
		return -1, "", err
	}
	if last && w.rule.CreateFlags != 0 && missing {
		return w.create(name)
	}
	if err != nil && !last {
		err = fmt.Errorf("%s: %w", path, err)
	}
	if err != nil {
		return -1, "", w.explain(err)
	}
	kind := st.Mode & unix.S_IFMT
	switch {
	case last && w.rule.Execute && kind != unix.S_IFLNK:
		return fd, "", nil
	case !last && kind == unix.S_IFDIR:
		w.setDir(fd, path, st)
		return -1, "", nil
	}
	defer unix.Close(fd)
	switch {
	case last && w.rule.CreateFlags != 0 && kind == unix.S_IFREG:
		return w.create(name)
	case last && kind != unix.S_IFLNK:
		file, err = unix.Openat(w.dir, name, w.rule.OpenFlags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		return file, "", w.explain(err)
	case kind != unix.S_IFLNK:
		return -1, "", w.explain(fmt.Errorf("%s: %w", path, unix.ENOTDIR))
	case last && !w.rule.AllowLink:
		return -1, "", w.refuse(errs.Invalid, "a symbolic link; name the file itself").
			WithHint("readlink -f %s  # use the path of the file itself", Quote(path))
	}
	target, err = w.readLink(fd, name)
	return -1, target, err
}

// create opens the file called name for writing, and creates it if it is
// missing. It returns the same values as step.
func (w *walk) create(name string) (fd int, target string, err error) {
	fd, err = unix.Openat(w.dir, name, w.rule.CreateFlags|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o600)
	return fd, "", w.explain(err)
}

// readLink reads a symbolic link, if its creator is trusted. The owner of the
// directory could put any file there, so a link that this owner created adds no
// risk. In a sticky directory such as /tmp, another user's link would let that
// user choose the file that is read.
func (w *walk) readLink(link int, name string) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(link, &st); err != nil {
		return "", w.explain(err)
	}
	forbidden := w.rule.Trust != nil && slices.Contains(w.rule.Trust.ForbiddenOwners, st.Uid)
	if forbidden || st.Uid != 0 && int(st.Uid) != os.Geteuid() && st.Uid != w.dirStat.Uid {
		path := filepath.Join(w.dirName, name)
		return "", w.refuse(errs.Invalid, "passes through symbolic link %s of uid %d", path, st.Uid).
			WithHint("readlink -f %s  # use a path without that link", Quote(path))
	}
	if w.links++; w.links > maxLinks {
		return "", w.refuse(errs.Invalid, "passes through too many symbolic links").
			WithHint("ls -l %s  # use the path of the file itself", Quote(filepath.Join(w.dirName, name)))
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(link, "", buf)
	if err != nil {
		return "", w.explain(err)
	}
	return string(buf[:n]), nil
}

// checkDir refuses the current directory if untrusted users could replace its
// entries. In the directory of a secret, untrusted users must not even be able
// to create entries, so the sticky bit makes no difference.
func (w *walk) checkDir(secret bool, dirOwners ...uint32) error {
	sticky := w.dirStat.Mode&unix.S_ISVTX != 0 && !secret
	return w.checkTrust(&w.dirStat, "the directory "+w.dirName, w.dirName, sticky, dirOwners...)
}

// restart goes back to the root.
func (w *walk) restart() error {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return w.explain(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return w.explain(err)
	}
	w.reachable = true
	w.setDir(fd, "/", st)
	return nil
}

func (w *walk) setDir(fd int, name string, st unix.Stat_t) {
	w.close()
	w.dir, w.dirName, w.dirStat = fd, name, st
	w.reachable = w.reachable && st.Mode&0o001 != 0
}

func (w *walk) close() {
	if w.dirName != "" {
		unix.Close(w.dir)
		w.dirName = ""
	}
}

// explain turns the error of a system call into a refusal. It returns nil for
// nil.
func (w *walk) explain(err error) error {
	if err == nil {
		return nil
	}
	kind := errs.Invalid
	switch {
	case errors.Is(err, unix.ENOENT):
		kind = errs.NotFound
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		kind = errs.Denied
	}
	return w.refuse(kind, "%v", err)
}

// split splits a path into components. It keeps "..", because the walk, like
// the kernel, must follow the links that precede a ".." before it goes up.
func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}
