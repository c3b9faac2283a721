package privsep

import (
	"strings"
	"testing"

	"schedrestd/ipc"
)

// TestRefusedPeers: who gets no worker of his own, by the reason that the log gives.
func TestRefusedPeers(t *testing.T) {
	s := service{schedUID: 7}
	unchecked := Config{Switches: ipc.Switches{DisableUserCheck: true}}
	for _, tt := range []struct {
		name string
		peer ipc.Connection
		c    Config
		want string
	}{
		{"a user", ipc.Connection{Network: ipc.Unix, UID: 1000, GID: 100, Vouched: true}, Config{}, ""},
		{"root", ipc.Connection{Network: ipc.Unix}, Config{}, "it is root's"},
		{"root in another group", ipc.Connection{Network: ipc.Unix, GID: 5, Vouched: true}, Config{}, "it is root's"},
		{"root, unchecked", ipc.Connection{Network: ipc.Unix, GID: 5, Vouched: true}, unchecked, ""},
		{"group root, unchecked", ipc.Connection{Network: ipc.Unix}, unchecked, "its group is 0"},
		{"group root", ipc.Connection{Network: ipc.Unix, UID: 1000}, Config{}, "its group is 0"},
		{"another namespace's", ipc.Connection{Network: ipc.Unix, UID: 65534, GID: 65534}, Config{}, "stand for nobody"},
		{"SchedUser", ipc.Connection{Network: ipc.Unix, UID: 7, GID: 7, Vouched: true}, Config{}, "it is SchedUser's"},
		{"TCP", ipc.Connection{Network: ipc.TCP, UID: ipc.NoID, GID: ipc.NoID}, Config{}, "the kernel does not say"},
	} {
		if got := s.refuses(tt.peer, tt.c); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
