package plan

import (
	"fmt"

	"schedrestd/internal/guard"
	"schedrestd/ipc"
)

// maxShare is the maximum length, in bytes, of the command that shareTokenKey
// stores in a Plan.
const maxShare = 1024

// shareTokenKey stores in t a command that the administrator can run. The
// command makes the keys of the keeper readable by SchedUser and by no worker.
// If possible, the command also lets a process of root that has no capabilities
// read the key. In that case shareTokenKey sets RootCanRead.
func shareTokenKey(t *ipc.Tokens, s ipc.Service) {
	owner, mode, root := fmt.Sprint(s.SchedUID), "0600", false
	switch {
	case s.SchedUID == 0:
		owner, root = "root", true
	case len(s.SchedGroups) > 0 && s.SchedGroups[0] != 0 && !(s.HasGroup && s.SchedGroups[0] == s.GID):
		owner, mode, root = fmt.Sprintf("root:%d", s.SchedGroups[0]), "0440", true
	}
	paths := guard.Quote(t.Key)
	if t.Signing != "" {
		paths += " " + guard.Quote(t.Signing)
	}
	share := fmt.Sprintf("chown %s %s && chmod %s %[2]s", owner, paths, mode)
	if t.Key != "" && len(share) <= maxShare {
		t.ShareCommand, t.RootCanRead = share, root
	}
}
