package become

import (
	"os"
	"strconv"
	"strings"
)

// PrivateGroup reports whether group has the same name as the user owner and no
// other members, as on the many systems that give each user a group of their
// own. Then only this user has the permissions of the group.
//
// It reads only /etc/passwd and /etc/group, and no groups of a directory
// service: an answer from the network must not determine which files root
// trusts. Package nss has the same function for processes that query such
// services anyway.
func PrivateGroup(owner, group uint32) bool { return privateGroup("/etc", owner, group) }

func privateGroup(etc string, owner, group uint32) bool {
	userEntry, ok := entry(etc+"/passwd", 7, owner)
	groupEntry, ok2 := entry(etc+"/group", 4, group)
	return ok && ok2 && userEntry[3] == groupEntry[2] && userEntry[0] == groupEntry[0] && groupEntry[3] == ""
}

// entry returns the fields of the first line with the number id in a file of
// /etc.
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
