package security

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
)

// Trust says whose directories and files are good enough.
type Trust struct {
	Owners  []uint32                       // root is always among them; nil: anybody but Never
	Never   []uint32                       // those who must own nothing on the way
	Private func(owner, group uint32) bool // is group the owner's alone? nil: none is
}

// OpenDir opens the directory path (O_PATH) when nobody beyond t can change what is in
// it, nor swap it or a directory above it. real is where the path leads once its
// links are followed: use that from here on, or the descriptor.
//
// A directory that others may write is refused unless it has the sticky bit, as
// /tmp: there they can add entries but not touch ours.
func (t Trust) OpenDir(path string) (fd int, real string, err error) {
	real, err = filepath.EvalSymlinks(path)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return -1, "", errs.Wrap(err, errs.Invalid, "directory %s", path)
	}
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err = unix.Open("/", flags, 0)
	at := "/"
	for _, name := range append([]string{""}, strings.FieldsFunc(real, func(r rune) bool { return r == '/' })...) {
		if name != "" && err == nil {
			at = filepath.Join(at, name)
			next, openErr := unix.Openat(fd, name, flags, 0)
			unix.Close(fd)
			fd, err = next, openErr
		}
		if err != nil {
			return -1, "", errs.Wrap(err, errs.Invalid, "directory %s", at)
		}
		if err := t.Check(fd, "directory "+at, at); err != nil {
			unix.Close(fd)
			return -1, "", err
		}
	}
	return fd, real, nil
}

// Check judges the owner and the mode of an open file or directory. what names it in the
// message, path in the command that mends it.
func (t Trust) Check(fd int, what, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return errs.Wrap(err, errs.Internal, "%s", what)
	}
	sticky := st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Mode&unix.S_ISVTX != 0
	group := st.Mode&0o020 != 0 && st.Gid != 0 && (t.Private == nil || !t.Private(st.Uid, st.Gid))
	switch {
	case slices.Contains(t.Never, st.Uid):
		return errs.New(errs.Denied, "%s belongs to uid %d, which will serve", what, st.Uid).
			WithHint("chown root %s", path)
	case t.Owners != nil && st.Uid != 0 && !slices.Contains(t.Owners, st.Uid):
		return errs.New(errs.Denied, "%s belongs to uid %d, not to root or to uid %s", what, st.Uid, join(t.Owners)).
			WithHint("chown root %s", path)
	case !sticky && st.Mode&0o002 != 0:
		return errs.New(errs.Denied, "%s can be written by everybody (mode %04o)", what, st.Mode&0o7777).
			WithHint("chmod o-w %s", path)
	case !sticky && group:
		return errs.New(errs.Denied, "%s can be written by group %d (mode %04o)", what, st.Gid, st.Mode&0o7777).
			WithHint("chmod g-w %s", path)
	}
	return nil
}

func join(ids []uint32) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = fmt.Sprint(id)
	}
	return strings.Join(words, ", ")
}
