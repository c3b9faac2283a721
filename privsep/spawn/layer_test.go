package spawn

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestParts: each part has its row, with a name of its own, and a namespace the link that shows it.
func TestParts(t *testing.T) {
	names := map[string]bool{}
	for p, row := range Parts {
		if row.Name == "" || names[row.Name] || (row.flag == 0) != (row.link == "") {
			t.Errorf("part %d: %+v", p, row)
		}
		names[row.Name] = true
	}
}

// TestAbsent: why each part is not there, by what was tried for it.
func TestAbsent(t *testing.T) {
	var mounts, none Spawner
	mounts.nest = &nests[0]
	mounts.deny(ErrNoFilter) // any
	mounts.nest = &nests[1]
	for i := range nests {
		none.nest = &nests[i]
		none.deny(unix.EUSERS)
	}
	none.nest = nil
	for _, tt := range []struct {
		name string
		s    *Spawner
		p    Part
		want layer
	}{
		{"a root in the only nest that had one", &mounts, OwnRoot, Found(ErrNoFilter)},
		{"what the one found has", &mounts, PidNamespace, Found(nil)},
		{"the namespace when none was found", &none, userNamespace, Found(unix.EUSERS)},
		{"… and another", &none, IpcNamespace, Found(ErrNoNest)},
		{"nothing was tried", new(Spawner), IpcNamespace, Found(unix.EPERM)},
		{"… for the namespace, either", new(Spawner), userNamespace, layer{}},
	} {
		if got := tt.s.Enter(tt.p, 0); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// TestPermits: what helps is said of what the kernel says, and of nothing else.
func TestPermits(t *testing.T) {
	for err, want := range map[error]string{unix.ENOSPC: "user.max_user_namespaces", unix.EACCES: "apparmor", unix.EROFS: "/proc", unix.EPERM: "unprivileged_userns_clone",
		unix.EINVAL: "CONFIG_USER_NS", nil: "mount"} {
		l := Layers{OwnRoot: Found(ErrNoNest)}
		if err != nil {
			l[userNamespace] = Found(err)
		}
		if got := l.Remedy(false); !strings.Contains(got, want) || strings.Contains(got, "max_user_namespaces") != (err == unix.ENOSPC) {
			t.Errorf("%v: %q", err, got)
		}
	}
	const group, root = "start in no supplementary group", "start as root with -u USER; or "
	for name, tt := range map[string]struct {
		l    Layers
		want string
	}{
		"a group":               {Layers{noGroups: Found(unix.EPERM)}, root + group},
		"what the kernel lacks": {Layers{Landlock: Found(ErrNoLandlock)}, ""},
	} {
		if got := tt.l.Remedy(false); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
