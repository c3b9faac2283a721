package nss

import (
	"strconv"
	"strings"

	"schedrestd/become"
	"schedrestd/internal/errs"
)

// maxName limits the length of a name that is looked up, in bytes.
const maxName = 255

// checkName returns an error if name can't be the name of a user, group or
// host. It refuses a name with a leading hyphen, because getent would treat it
// as an option. It refuses a number, because getent would look it up as an id.
// It also refuses characters that names can't contain, such as the field
// separators of /etc/passwd and /etc/group.
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

// parseID parses a uid or gid. It refuses the number 4294967295 (-1). For
// setresuid, this number means "unchanged", so the process would remain root.
func parseID(s string) (uint32, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || uint32(n) == become.NoID || !isNumber(s) {
		return 0, false
	}
	return uint32(n), true
}
