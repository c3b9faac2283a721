package identity

import (
	"strings"
	"testing"

	"schedrestd/ipc"
)

// TestRefusedPeers checks which peers are refused a worker of their own, and
// for which reason.
func TestRefusedPeers(t *testing.T) {
	const checked, unchecked = false, true
	service := Service{SchedUID: 7}
	for _, tt := range []struct {
		name string
		peer ipc.Connection
		how  bool
		want string
	}{
		{"a user", ipc.Connection{Network: ipc.Unix, UID: 1000, GID: 100, Verified: true}, checked, ""},
		{"root", ipc.Connection{Network: ipc.Unix}, checked, "it is root's"},
		{"root in another group", ipc.Connection{Network: ipc.Unix, GID: 5, Verified: true}, checked, "it is root's"},
		{"root, unchecked", ipc.Connection{Network: ipc.Unix, GID: 5, Verified: true}, unchecked, ""},
		{"group root, unchecked", ipc.Connection{Network: ipc.Unix}, unchecked, "its group is 0"},
		{"group root", ipc.Connection{Network: ipc.Unix, UID: 1000}, checked, "its group is 0"},
		{"another namespace's", ipc.Connection{Network: ipc.Unix, UID: 65534, GID: 65534}, checked, "belong to no user"},
		{"SchedUser", ipc.Connection{Network: ipc.Unix, UID: 7, GID: 7, Verified: true}, checked, "it is SchedUser's"},
		{"TCP", ipc.Connection{Network: ipc.TCP, UID: ipc.NoID, GID: ipc.NoID}, checked, "the kernel does not say"},
	} {
		if got := service.RefusalReason(tt.peer, tt.how); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
