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
// capabilities afterwards, it also fills in the owner.
func shareTokenKey(t *ipc.Tokens, s ipc.Service) {
	owner, mode := fmt.Sprint(s.SchedUID), "0600"
	switch {
	case s.SchedUID == 0:
		owner, t.Owner = "root", "root"
	case len(s.SchedGroups) > 0 && s.SchedGroups[0] != 0 && !(s.HasGroup && s.SchedGroups[0] == s.GID):
		owner, mode = fmt.Sprintf("root:%d", s.SchedGroups[0]), "0440"
		t.Owner = owner
	}
	share := fmt.Sprintf("chown %s %s && chmod %s %[2]s", owner, guard.Quote(t.Key), mode)
	if t.Key == "" || len(share) > longestShare {
		t.Owner = ""
		return
	}
	t.Share = share
}
