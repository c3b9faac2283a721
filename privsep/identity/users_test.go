package identity

import (
	"strings"
	"testing"

	"schedrestd/become"
	"schedrestd/ipc"
	"schedrestd/security"
)

// TestFindUsers checks which users of a Plan are rejected.
func TestRoleUsers(t *testing.T) {
	service := Service{Identity: security.Identity{Name: "gate", UID: 1000, GID: 1000}, SchedUID: 7}
	for _, tt := range []struct {
		name   string
		change func(users []ipc.RoleUser) []ipc.RoleUser
		want   string
	}{
		{"all different", func(u []ipc.RoleUser) []ipc.RoleUser { return u }, ""},
		{"another order", func(u []ipc.RoleUser) []ipc.RoleUser { u[0], u[1] = u[1], u[0]; return u }, ""},
		{"none", func(u []ipc.RoleUser) []ipc.RoleUser { return nil }, "that of root"},
		{"none for a role", func(u []ipc.RoleUser) []ipc.RoleUser { return u[1:] }, "that of root"},
		{"two for a role", func(u []ipc.RoleUser) []ipc.RoleUser { u[0].Role = u[1].Role; return u }, "that of root"},
		{"root", func(u []ipc.RoleUser) []ipc.RoleUser { u[1].UID = 0; return u }, "that of root"},
		{"group root", func(u []ipc.RoleUser) []ipc.RoleUser { u[1].GID = 0; return u }, "or its group is 0"},
		{"SchedUser", func(u []ipc.RoleUser) []ipc.RoleUser { u[1].UID = 7; return u }, "that of SchedUser"},
		{"the service's user", func(u []ipc.RoleUser) []ipc.RoleUser { u[2].UID = 1000; return u }, "that of gate"},
		{"the overflow id", func(u []ipc.RoleUser) []ipc.RoleUser { u[2].UID = become.Overflow; return u }, "that of the overflow id"},
		{"one user for two roles", func(u []ipc.RoleUser) []ipc.RoleUser { u[4].UID = u[2].UID; return u }, "that of the keeper"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var list []ipc.RoleUser
			for i, role := range Roles {
				list = append(list, ipc.RoleUser{Role: role, Name: "x", UID: 900 + uint32(i), GID: 950})
			}
			list = tt.change(list)
			p := &ipc.PackedPlan{}
			p.Users = list
			service := service
			err := service.findUsers(p)
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%v, want %q", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range list {
				if id := service.Users[u.Role]; id.Name != u.Name || id.UID != u.UID || id.GID != u.GID {
					t.Errorf("%s: %+v", u.Role, service.Users[u.Role])
				}
			}
		})
	}
}
