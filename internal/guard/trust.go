package guard

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
)

// Trust says which users may own or change a file and the directories above it.
// Use it where not every owner can be trusted, for example for a program that
// root executes or for a socket that clients rely on.
type Trust struct {
	Owners          []uint32                       // uids in addition to root; nil: any uid except ForbiddenOwners
	ForbiddenOwners []uint32                       // the users that serve requests, who must not own the file or a directory above it
	PrivateGroup    func(owner, group uint32) bool // reports whether group belongs only to owner; nil: only root's group is private
	Groups          []uint32                       // groups that may have write permission, regardless of their members
	DirOwners       []uint32                       // uids that may own the directory that Parent opens, but no directory above it
}

// checkTrust refuses a file or directory that an untrusted user owns or may
// change. The error's message contains label, and its hint contains path. If
// sticky is true, st describes a sticky directory such as /tmp. Other users may
// have write permission there, because they can add entries, but can't change
// ours.
//
// In addition to the rule's owners, the users in dirOwners may own the file or
// directory.
func (w *walk) checkTrust(st *unix.Stat_t, label, path string, sticky bool, dirOwners ...uint32) error {
	t, mode := w.rule.Trust, st.Mode&0o7777
	if t != nil && slices.Contains(t.ForbiddenOwners, st.Uid) {
		return w.refuse(errs.Invalid, "%s belongs to uid %d, which serves requests", label, st.Uid).
			WithHint("chown root %s", Quote(path))
	}
	if t != nil && t.Owners != nil && st.Uid != 0 && !slices.Contains(t.Owners, st.Uid) && !slices.Contains(dirOwners, st.Uid) {
		owners := slices.Concat([]uint32{0}, t.Owners, dirOwners)
		err := w.refuse(errs.Invalid, "%s belongs to uid %d, must belong to uid %s", label, st.Uid, joinUIDs(owners))
		return w.withOwnerHint(err, st, path, "  # or use another path")
	}
	if sticky {
		return nil
	}
	if mode&0o002 != 0 {
		err := w.refuse(errs.Invalid, "%s is writable by every user (mode %04o)", label, mode)
		if mode&unix.S_ISVTX != 0 { // a directory like /tmp, which is meant to be writable
			return err.WithHint("ls -ld %s  # use another path", Quote(path))
		}
		return err.WithHint("chmod %s %s  # or use another path", w.chmodMode(st), Quote(path))
	}
	if w.groupCanWrite(st) {
		err := w.refuse(errs.Invalid, "%s is writable by group %d (mode %04o)", label, st.Gid, mode)
		if len(t.Groups) > 0 {
			return err.WithHint("chmod g-w %s  # or let group %d write to it: chgrp %[2]d %[1]s", Quote(path), t.Groups[0])
		}
		return err.WithHint("chmod g-w %s  # or use another path", Quote(path))
	}
	return nil
}

// withOwnerHint adds a hint to err, an error about a wrong owner. The hint is
// the command that sets the right owner.
func (w *walk) withOwnerHint(err *errs.Error, st *unix.Stat_t, path, suffix string) error {
	if isOverflowUID(st.Uid) {
		return err.WithHint("cat /proc/self/uid_map  # map its owner in this user namespace, or use another path")
	}
	return err.WithHint("chown %s %s%s", w.intendedOwner(st), Quote(path), suffix)
}

// groupCanWrite reports whether an untrusted group may write to the file.
func (w *walk) groupCanWrite(st *unix.Stat_t) bool {
	t := w.rule.Trust
	return t != nil && st.Mode&0o020 != 0 && st.Gid != 0 && !slices.Contains(t.Groups, st.Gid) && (t.PrivateGroup == nil || !t.PrivateGroup(st.Uid, st.Gid))
}

// chmodMode returns the mode argument of the chmod that takes write permission
// from users who are not trusted.
func (w *walk) chmodMode(st *unix.Stat_t) string {
	if w.groupCanWrite(st) {
		return "go-w"
	}
	return "o-w"
}

// intendedOwner returns the owner for a hint. If st describes a directory that
// all users can enter, this is root, because the directory may be far above the
// file. Otherwise it is the owner that the rule demands for the file.
func (w *walk) intendedOwner(st *unix.Stat_t) string {
	open := st.Mode&unix.S_IFMT == unix.S_IFDIR && st.Mode&0o001 != 0
	if !open && len(w.rule.Owners) > 0 && w.rule.Owners[0] != 0 {
		return fmt.Sprint(w.rule.Owners[0])
	}
	return "root"
}

// isOverflowUID reports whether uid is the uid that the kernel shows for owners
// who have no uid in this user namespace.
func isOverflowUID(uid uint32) bool {
	const overflow, fullMap = 65534, "0 0 4294967295"
	if uid != overflow {
		return false
	}
	text, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(text)), " ") != fullMap
}
