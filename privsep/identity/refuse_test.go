package identity

import (
	"reflect"
	"strings"
	"testing"

	"schedrestd/become"
	"schedrestd/ipc"
	"schedrestd/security"
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

// TestVouched checks as which users the keeper can have processes started, and with
// which groups.
func TestVouched(t *testing.T) {
	s, plan := Service{Identity: security.Identity{UID: 2000}, SchedUID: 1500, SchedGroups: []uint32{1500, 5000}, MinUID: 1000}, new(ipc.PackedPlan)
	refused := []uint32{0, 1, 999, 1500, 2000, become.Overflow, become.NoID}
	for i, role := range Roles {
		uid := 2001 + uint32(i)
		plan.Users = append(plan.Users, ipc.RoleUser{Role: role, UID: uid, GID: uid})
		refused = append(refused, uid)
	}
	if err := s.findUsers(plan); err != nil {
		t.Fatal(err)
	}
	for _, uid := range refused {
		if id, ok := s.Vouched(&ipc.Vouch{UID: uid, GID: 1000}); ok {
			t.Errorf("uid %d: %+v", uid, id)
		}
	}
	for _, tt := range []struct {
		vouch ipc.Vouch
		want  security.Identity
	}{
		{ipc.Vouch{UID: 1000, GID: 1000, Groups: []uint32{1000, 4000}}, security.Identity{UID: 1000, GID: 1000, Groups: []uint32{1000, 4000}}},
		{ipc.Vouch{UID: 1001, GID: 1000, Groups: []uint32{0, 42, 999, 4000, 5000}}, security.Identity{UID: 1001, GID: 1000, Groups: []uint32{4000}}},
		{ipc.Vouch{UID: 1001, GID: 100, Groups: []uint32{100}}, security.Identity{UID: 1001, GID: become.Overflow, Groups: []uint32{}}},
		{ipc.Vouch{UID: 1001, GID: 5000}, security.Identity{UID: 1001, GID: become.Overflow}},
		{ipc.Vouch{UID: 1001, GID: 0}, security.Identity{UID: 1001, GID: become.Overflow}},
	} {
		if got, ok := s.Vouched(&tt.vouch); !ok || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v: %+v, %t", tt.vouch, got, ok)
		}
	}
}
