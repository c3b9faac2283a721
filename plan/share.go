package plan

import (
	"fmt"

	"schedrestd/guard"
	"schedrestd/ipc"
)

// longestShare bounds the command of shareTokenKey, which a Plan carries, in bytes.
const longestShare = 1024

// shareTokenKey fills in the command that gives the key of HS256 tokens to SchedUser, and
// to root as well if possible, but to no worker. If root can read the key without
// capabilities afterwards, it also sets Root.
func shareTokenKey(t *ipc.Tokens, s ipc.Service) {
	owner, mode, root := fmt.Sprint(s.SchedUID), "0600", false
	switch {
	case s.SchedUID == 0:
		owner, root = "root", true
	case len(s.SchedGroups) > 0 && s.SchedGroups[0] != 0 && !(s.HasGroup && s.SchedGroups[0] == s.GID):
		owner, mode, root = fmt.Sprintf("root:%d", s.SchedGroups[0]), "0440", true
	}
	if share := fmt.Sprintf("chown %s %s && chmod %s %[2]s", owner, guard.Quote(t.Key), mode); t.Key != "" && len(share) <= longestShare {
		t.Share, t.Root = share, root
	}
}
