package worker

import (
	"testing"

	"schedrestd/auth"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// TestAdministers checks whose credential is that of root or SchedUser.
func TestAdministers(t *testing.T) {
	admin := administers(work.Setup{Setup: ipc.Setup{SchedUID: 64030, Privileged: []string{"root", "slurm"}}})
	by := func(user, actAs string) auth.Credential {
		return auth.Credential{Token: "t", Claims: auth.Claims{User: user}, ActAs: actAs}
	}
	withUID := func(c auth.Credential, uid uint32) auth.Credential {
		c.Claims.UID = &uid
		return c
	}
	for _, tt := range []struct {
		name string
		c    auth.Credential
		want bool
	}{
		{"root's token", by("root", ""), true},
		{"SlurmUser's token", by("slurm", ""), true},
		{"root's token for SlurmUser", by("root", "slurm"), true},
		{"root's token for a user", by("root", "alice"), false},
		{"a user's token", by("alice", ""), false},
		{"a user's token for root", by("alice", "root"), false},
		{"a token without a user", by("", ""), false},
		{"uid 0 from the token", withUID(by("admin", ""), 0), true},
		{"SlurmUser's uid from the token", withUID(by("slurm", "slurm"), 64030), true},
		{"root's name with another uid from the token", withUID(by("root", ""), 1000), false},
		{"another uid from the token, for root", withUID(by("slurm", "root"), 1000), false},
		{"uid 0 from the token, for a user", withUID(by("admin", "alice"), 0), false},
		{"root at a socket", auth.Credential{Local: true}, true},
		{"SlurmUser at a socket", auth.Credential{Local: true, UID: 64030}, true},
		{"a user at a socket", auth.Credential{Local: true, UID: 1000}, false},
	} {
		if got := admin(tt.c); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}
