package spawn

import (
	"testing"

	"schedrestd/ipc"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestParts: each part has its row, with a name of its own, and a namespace the link that shows it.
func TestParts(t *testing.T) {
	names := map[string]bool{}
	for p, row := range parts {
		if row.name == "" || names[row.name] || (row.flag == 0) != (row.link == "") {
			t.Errorf("part %d: %+v", p, row)
		}
		names[row.name] = true
	}
}

// TestAbsent: the reason for each missing part, from the attempt to have it.
func TestAbsent(t *testing.T) {
	var mounts, none Spawner
	mounts.nest = &nests[0]
	mounts.deny(errUnconfined) // any
	mounts.nest = &nests[1]
	for i := range nests {
		none.nest = &nests[i]
		none.deny(unix.EUSERS)
	}
	none.nest = nil
	for _, tt := range []struct {
		name string
		s    *Spawner
		p    part
		want layer
	}{
		{"a root in the only nest that had one", &mounts, ownRoot, found(errUnconfined)},
		{"what the one found has", &mounts, pidNamespace, found(nil)},
		{"the namespace when none was found", &none, userNamespace, found(unix.EUSERS)},
		{"… and another", &none, ipcNamespace, found(errNoNest)},
		{"nothing was tried", new(Spawner), ipcNamespace, found(unix.EPERM)},
		{"… for the namespace, either", new(Spawner), userNamespace, layer{}},
	} {
		if got := tt.s.enter(tt.p, 0); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// TestPartsOfASpawner checks that a part which a start without root may lack is reported so, and as missing otherwise.
func TestPartsOfASpawner(t *testing.T) {
	var s Spawner
	s.layers = layers{ipcNamespace: found(nil), networkNamespace: found(unix.EPERM), ownRoot: found(unix.EINVAL)}
	for root, want := range map[bool]string{false: ipc.PartUnpermitted, true: ipc.PartMissing} {
		s.Root = root
		got := s.Parts()[ipcNamespace : ownRoot+1]
		if diff := cmp.Diff([]ipc.Part{
			{Name: "IPC namespace", Is: ipc.PartOn},
			{Name: "network namespace", Is: ipc.PartMissing, Why: "operation not permitted"},
			{Name: "root of their own", Is: want, Why: "invalid argument"},
		}, got); diff != "" {
			t.Errorf("root %t (-want +got):\n%s", root, diff)
		}
	}
	if got, want := s.lacks(), "network namespace (operation not permitted), root of their own (invalid argument)"; got != want {
		t.Errorf("it lacks %q, want %q", got, want)
	}
}
