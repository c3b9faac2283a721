package identity

import (
	"strings"
	"testing"

	"schedrestd/become"
	"schedrestd/ipc"
	"schedrestd/security"
)

// TestRoleUsers checks which users of a Plan are rejected, and that roles
// without a user get different ids.
func TestRoleUsers(t *testing.T) {
	service := Service{Identity: security.Identity{Name: "gate", UID: 1000, GID: 1000}, SchedUID: 7}
	user := func(role ipc.Role, uid, gid uint32) ipc.RoleUser {
		return ipc.RoleUser{Role: role, Name: "x", UID: uid, GID: gid}
	}
	for _, tt := range []struct {
		name  string
		users []ipc.RoleUser
		want  string
	}{
		{"none", nil, ""},
		{"two", []ipc.RoleUser{user(ipc.Keeper, 900, 900), user(ipc.Worker, 901, 901)}, ""},
		{"root", []ipc.RoleUser{user(ipc.Keeper, 0, 900)}, "that of root"},
		{"group root", []ipc.RoleUser{user(ipc.Keeper, 900, 0)}, "or its group is 0"},
		{"SchedUser", []ipc.RoleUser{user(ipc.Keeper, 7, 7)}, "that of SchedUser"},
		{"the service's user", []ipc.RoleUser{user(ipc.Resolver, 1000, 900)}, "that of gate"},
		{"the overflow id", []ipc.RoleUser{user(ipc.Worker, become.Overflow, 900)}, "that of the overflow id"},
		{"one user for two roles", []ipc.RoleUser{user(ipc.Keeper, 900, 900), user(ipc.Auditor, 900, 900)}, "that of the keeper"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &ipc.PackedPlan{}
			p.Users = tt.users
			users, err := service.RoleUsers(p)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			seen := map[uint32]bool{}
			for _, role := range UserRoles {
				id := users[role]
				if seen[id.UID] || id.UID == 0 || id.GID == 0 || id.Name == "" {
					t.Errorf("%s: %+v", role, id)
				}
				seen[id.UID] = true
			}
			for _, u := range tt.users {
				if users[u.Role].UID != u.UID {
					t.Errorf("%s: %+v", u.Role, users[u.Role])
				}
			}
		})
	}
}
