package plan

import (
	"strings"
	"testing"

	"schedrestd/ipc"
)

// TestShareTokenKey checks that the command lets SchedUser read the token key.
// If SchedUser has a group that is neither root's group nor the workers' group,
// the command must also let root read the key.
func TestShareTokenKey(t *testing.T) {
	for name, tt := range map[string]struct {
		key     string
		service ipc.Service
		want    ipc.Tokens
	}{
		"root":           {"/k", ipc.Service{}, ipc.Tokens{Key: "/k", RootCanRead: true, ShareCommand: "chown root /k && chmod 0600 /k"}},
		"a group":        {"/k y", ipc.Service{SchedUID: 7, SchedGroups: []uint32{8, 9}, HasGroup: true, GID: 9}, ipc.Tokens{Key: "/k y", RootCanRead: true, ShareCommand: "chown root:8 '/k y' && chmod 0440 '/k y'"}},
		"no group":       {"/k", ipc.Service{SchedUID: 7}, ipc.Tokens{Key: "/k", ShareCommand: "chown 7 /k && chmod 0600 /k"}},
		"workers' group": {"/k", ipc.Service{SchedUID: 7, SchedGroups: []uint32{8}, HasGroup: true, GID: 8}, ipc.Tokens{Key: "/k", ShareCommand: "chown 7 /k && chmod 0600 /k"}},
		"root's group":   {"/k", ipc.Service{SchedUID: 7, SchedGroups: []uint32{0}}, ipc.Tokens{Key: "/k", ShareCommand: "chown 7 /k && chmod 0600 /k"}},
		"two keys":       {"/k", ipc.Service{SchedUID: 7}, ipc.Tokens{Key: "/k", Signing: "/s k", ShareCommand: "chown 7 /k '/s k' && chmod 0600 /k '/s k'"}},
		"no key":         {"", ipc.Service{}, ipc.Tokens{}},
	} {
		got := ipc.Tokens{Key: tt.key, Signing: tt.want.Signing}
		if shareTokenKey(&got, tt.service); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
	long := ipc.Tokens{Key: "/" + strings.Repeat("k", maxShare)}
	if shareTokenKey(&long, ipc.Service{}); long.ShareCommand != "" || long.RootCanRead {
		t.Errorf("a command of %d bytes", len(long.ShareCommand))
	}
}
