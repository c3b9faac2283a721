package become

import (
	"os"
	"strconv"
	"strings"
)

// PrivateGroup reports whether group is the private group of the user with the
// uid owner. A private group is the primary group of its user, has the same
// name as the user, and has no other members. So only this user has the group's
// permissions. Many systems give each user such a group.
//
// PrivateGroup reads only /etc/passwd and /etc/group. It queries no directory
// service, because an answer from the network must not determine which files
// root trusts. The function nss.PrivateGroup also queries directory services.
// It is for processes that use such services anyway.
func PrivateGroup(owner, group uint32) bool { return privateGroup("/etc", owner, group) }

func privateGroup(etc string, owner, group uint32) bool {
	userEntry, ok := entry(etc+"/passwd", 7, owner)
	groupEntry, ok2 := entry(etc+"/group", 4, group)
	return ok && ok2 && userEntry[3] == groupEntry[2] && userEntry[0] == groupEntry[0] && groupEntry[3] == ""
}

// entry reads the file at path, which has the format of /etc/passwd or
// /etc/group. It returns the fields of the first line with the given id. It
// skips lines that have an empty name or a different number of fields.
func entry(path string, fields int, id uint32) ([]string, bool) {
	text, _ := os.ReadFile(path)
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(f) == fields && f[0] != "" && f[2] == strconv.FormatUint(uint64(id), 10) {
			return f, true
		}
	}
	return nil, false
}
