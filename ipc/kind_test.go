package ipc_test

import (
	"testing"

	"schedrestd/ipc"
)

func TestRoleString(t *testing.T) {
	for role, want := range map[ipc.Role]string{
		ipc.Parent:                "parent",
		ipc.Exporter:              "exporter",
		ipc.Worker | ipc.Exporter: "roles 0b100000010",
		0:                         "roles 0b0",
		ipc.Credential << 1:       "roles 0b100000000000",
	} {
		if got := role.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
