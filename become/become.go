// Package become answers who a name or a number is, and who is at the other end of
// a UNIX socket.
//
// Users live in NSS (files, LDAP, sssd), which a static Go program can't load. So the
// files are read here, and for what they don't have getent is asked: by fixed
// path, with a time limit, a clean environment, as nobody when this process is
// root, because an NSS module parses what came over the network. Answers are kept
// for a few seconds.
//
// It refuses names that getent could take for an option or a number, and numbers
// that the kernel uses for "nobody we know". Errors are *errs.Error: NotFound when
// there is no such entry, Unavailable when it could not be found out.
package become

import (
	"strconv"
	"strings"

	"schedrestd/errs"
)

// Kernel's stand-ins for ids that have no number here.
const (
	NoID     uint32 = 1<<32 - 1 // (uid_t)-1: "unchanged", never an account
	Overflow uint32 = 65534     // an id that this user namespace can't show; also nobody
)

// maxName is the longest user or group name that is looked up, in bytes.
const maxName = 255

// goodName refuses what can't be a name, before it reaches getent: an option, a number
// (getent would search by id), a separator of the files.
func goodName(what, name string) error {
	bad := strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == ':' || r == ',' || r == '/' || r == 0x7f })
	if name == "" || len(name) > maxName || bad || strings.HasPrefix(name, "-") || isNumber(name) {
		return errs.New(errs.Invalid, "%q can't be the name of a %s", name, what)
	}
	return nil
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// parseID reads a uid or gid. The number that means "unchanged" to the kernel is
// refused: as an argument of setresuid it would keep root.
func parseID(s string) (uint32, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || uint32(n) == NoID || !isNumber(s) {
		return 0, false
	}
	return uint32(n), true
}
