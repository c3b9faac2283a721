package nss

import (
	"strconv"
	"strings"

	"schedrestd/become"
	"schedrestd/errs"
)

// maxName is the longest user or group name that is looked up, in bytes.
const maxName = 255

// checkName returns an error for a text that can't be a name. This prevents
// getent from taking a text with a hyphen at the start for an option, and from
// searching for a number by id. A text with a separator of the files is
// refused, too.
func checkName(kind, name string) error {
	bad := strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == ':' || r == ',' || r == '/' || r == 0x7f })
	if name == "" || len(name) > maxName || bad || strings.HasPrefix(name, "-") || isNumber(name) {
		return errs.New(errs.Invalid, "%q can't be the name of a %s", name, kind)
	}
	return nil
}

func isNumber(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// parseID parses a uid or gid. It refuses the number that means "unchanged" to
// the kernel. If setresuid got that number, the process would remain root.
func parseID(s string) (uint32, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || uint32(n) == become.NoID || !isNumber(s) {
		return 0, false
	}
	return uint32(n), true
}
