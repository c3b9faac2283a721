package spawn

import (
	"strings"
	"testing"

	"schedrestd/ipc"
	"schedrestd/security"

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
	mounts.deny(errNoFilter) // any
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
		{"a root in the only nest that had one", &mounts, ownRoot, found(errNoFilter)},
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

// TestLayers: what the log and the page have of a sandbox, by the facts that a process gives of itself.
func TestLayers(t *testing.T) {
	born := layers{ipcNamespace: found(nil), networkNamespace: found(unix.EPERM), ownRoot: found(unix.EINVAL), noNewPrivs: found(nil)}
	audit := born
	audit[callFilter] = (&Spawner{Options: Options{Switches: ipc.Switches{AuditConfinement: true}}}).enter(callFilter, 0)
	for _, tt := range []struct {
		name          string
		born          layers
		how           ipc.Seal
		sealed        security.Sealed
		on, off, left string
	}{
		{"all that a process has", born, ipc.SealUnix, security.Sealed{Filter: true, Landlock: 4, Denies: security.DeniesFiles | security.DeniesTCP},
			"IPC namespace, no_new_privs, seccomp, Landlock 4 (files, TCP)", "", "network namespace, root of their own (invalid argument)"},
		{"a Landlock that knows no TCP", born, ipc.SealUnix, security.Sealed{Filter: true, Landlock: 3, Denies: security.DeniesFiles},
			"IPC namespace, no_new_privs, seccomp, Landlock 3 (files)", "", "network namespace, root of their own (invalid argument), Landlock for TCP (" + errNoTCP.Error() + ")"},
		{"… before a worker that connects nothing", born, 0, security.Sealed{Filter: true, Landlock: 3, Denies: security.DeniesFiles},
			"IPC namespace, no_new_privs, seccomp, Landlock 3 (files)", "", "network namespace, root of their own (invalid argument)"},
		{"no Landlock", born, 0, security.Sealed{Filter: true},
			"IPC namespace, no_new_privs, seccomp", "", "network namespace, root of their own (invalid argument), Landlock (" + errNoLandlock.Error() + ")"},
		{"a filter that logs", audit, 0, security.Sealed{Filter: true, Audit: true, Landlock: 1, Denies: security.DeniesFiles},
			"IPC namespace, no_new_privs, Landlock 1 (files)", "system call filter (audit_confinement: it logs, and kills no process)", "network namespace, root of their own (invalid argument)"},
		{"a filter that logs, without the option for it", born, 0, security.Sealed{Filter: true, Audit: true, Landlock: 1, Denies: security.DeniesFiles},
			"IPC namespace, no_new_privs, Landlock 1 (files)", "", "network namespace, root of their own (invalid argument), system call filter (" + errNoFilter.Error() + ")"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := tt.born.closed(tt.how, tt.sealed)
			want := []string{tt.on, tt.off, tt.left}
			got := []string{strings.Join(l.list(ipc.PartOn), ", "), strings.Join(l.list(ipc.PartOff), ", "), strings.Join(l.list(ipc.PartMissing), ", ")}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("on, off, left out (-want +got):\n%s", diff)
			}
		})
	}
}
