package spawn

import (
	"testing"

	"schedrestd/ipc"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// TestParts checks that each part has a row with a unique name, and that each
// namespace has a link in /proc.
func TestParts(t *testing.T) {
	names := map[string]bool{}
	for p, row := range parts {
		if row.name == "" || names[row.name] || (row.flag == 0) != (row.link == "") {
			t.Errorf("part %d: %+v", p, row)
		}
		names[row.name] = true
	}
}

// TestAbsent checks the reason that is reported for a missing part. The reason
// depends on which user namespace setups were tried, and on their errors.
func TestAbsent(t *testing.T) {
	var mounts, none Spawner
	mounts.userNS = &userNSSetups[0]
	mounts.recordPartErrors(errUnconfined) // any error
	mounts.userNS = &userNSSetups[1]
	for i := range userNSSetups {
		none.userNS = &userNSSetups[i]
		none.recordPartErrors(unix.EUSERS)
	}
	none.userNS = nil
	for _, tt := range []struct {
		name string
		s    *Spawner
		p    part
		want ipc.Part
	}{
		{"a root in the only nest that had one", &mounts, ownRoot, ipc.Part{State: ipc.PartUnpermitted, Reason: errUnconfined.Error()}},
		{"what the one found has", &mounts, pidNamespace, ipc.Part{State: ipc.PartOn}},
		{"the namespace when none was found", &none, userNamespace, ipc.Part{State: ipc.PartMissing, Reason: unix.EUSERS.Error()}},
		{"… and another", &none, ipcNamespace, ipc.Part{State: ipc.PartMissing, Reason: ipc.NoUserNamespace}},
		{"nothing was tried", new(Spawner), ipcNamespace, ipc.Part{State: ipc.PartMissing, Reason: unix.EPERM.Error()}},
		{"… for the namespace, either", new(Spawner), userNamespace, ipc.Part{}},
	} {
		tt.want.Name = parts[tt.p].name
		tt.s.enterPart(tt.p, 0)
		if got := tt.s.states[tt.p]; got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestPartsOfASpawner checks the states that are reported for parts that the
// thread could not enter. If root did not start the gateway, a missing root
// directory must be reported as not permitted. If root started the gateway, it
// must be reported as missing.
func TestPartsOfASpawner(t *testing.T) {
	for root, want := range map[bool]string{false: ipc.PartUnpermitted, true: ipc.PartMissing} {
		s := Spawner{Options: Options{Root: root, Switches: ipc.Switches{DisableUnshareSysV: true}}}
		for p := range numParts {
			s.enterPart(p, 0)
		}
		s.setState(networkNamespace, unix.EPERM)
		s.setState(ownRoot, unix.EINVAL)
		s.setState(pidNamespace, unix.EPERM)
		got := s.Parts()[ipcNamespace : ownRoot+1]
		if diff := cmp.Diff([]ipc.Part{
			{Name: "IPC namespace", State: ipc.PartOff, Reason: "disable_unshare_sysv"},
			{Name: "network namespace", State: ipc.PartMissing, Reason: "operation not permitted"},
			{Name: "root of their own", State: want, Reason: "invalid argument"},
		}, got); diff != "" {
			t.Errorf("root %t (-want +got):\n%s", root, diff)
		}
		if got, want := s.missingParts(), "IPC namespace (disable_unshare_sysv), network namespace (operation not permitted), root of their own (invalid argument), PID namespace (operation not permitted)"; got != want {
			t.Errorf("it lacks %q, want %q", got, want)
		}
		s.setState(ownRoot, nil)
		if got, want := s.states[ownRoot], (ipc.Part{Name: "root of their own", State: ipc.PartOn}); got != want {
			t.Errorf("a part that was missing before: %v, want %v", got, want)
		}
	}
}
