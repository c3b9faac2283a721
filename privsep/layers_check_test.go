package privsep

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/privsep/spawn"
	"schedrestd/security"
)

// TestLayers: what the log and the page have of a cage, by the facts that a process gives of itself.
func TestLayers(t *testing.T) {
	born := spawn.Layers{spawn.IpcNamespace: spawn.Found(nil), spawn.NetworkNamespace: spawn.Found(unix.EPERM), spawn.OwnRoot: spawn.Found(unix.EINVAL), spawn.NoNewPrivs: spawn.Found(nil)}
	audit := born
	audit[spawn.CallFilter] = (&spawn.Spawner{Options: spawn.Options{Switches: security.Switches{AuditConfinement: true}}}).Enter(spawn.CallFilter, 0)
	const (
		network = "one that found a hole in the filter would be in"
		files   = "one that found a hole in the filter and in Landlock would see"
		noMore  = "one that found a hole in the filter would see"
		undone  = "a TCP connection that it was given can be undone"
		audited = "all that the filter should kill for (audit_confinement)"
	)
	for _, tt := range []struct {
		name           string
		born           spawn.Layers
		how            ipc.Seal
		sealed         security.Sealed
		on, off, left  string
		escapes, never []string
	}{
		{"all that a process has", born, ipc.SealUnix, security.Sealed{Filter: true, Landlock: 4, Denies: security.DeniesFiles | security.DeniesTCP},
			"IPC namespace, no_new_privs, seccomp, Landlock 4 (files, TCP)", "", "network namespace, root of their own (invalid argument)",
			[]string{network, files}, []string{undone, audited, noMore}},
		{"a Landlock that knows no TCP", born, ipc.SealUnix, security.Sealed{Filter: true, Landlock: 3, Denies: security.DeniesFiles},
			"IPC namespace, no_new_privs, seccomp, Landlock 3 (files)", "", "network namespace, root of their own (invalid argument), Landlock for TCP (" + spawn.ErrNoTCP.Error() + ")",
			[]string{undone}, []string{audited}},
		{"… before a worker that connects nothing", born, 0, security.Sealed{Filter: true, Landlock: 3, Denies: security.DeniesFiles},
			"IPC namespace, no_new_privs, seccomp, Landlock 3 (files)", "", "network namespace, root of their own (invalid argument)",
			nil, []string{undone}},
		{"no Landlock", born, 0, security.Sealed{Filter: true},
			"IPC namespace, no_new_privs, seccomp", "", "network namespace, root of their own (invalid argument), Landlock (" + spawn.ErrNoLandlock.Error() + ")",
			[]string{noMore}, []string{undone, files}},
		{"a filter that logs", audit, 0, security.Sealed{Filter: true, Audit: true, Landlock: 1, Denies: security.DeniesFiles},
			"IPC namespace, no_new_privs, Landlock 1 (files)", "system call filter (audit_confinement: it logs, and kills nobody)", "network namespace, root of their own (invalid argument)",
			[]string{audited}, nil},
		{"a filter that logs, and nobody asked for that", born, 0, security.Sealed{Filter: true, Audit: true, Landlock: 1, Denies: security.DeniesFiles},
			"IPC namespace, no_new_privs, Landlock 1 (files)", "", "network namespace, root of their own (invalid argument), system call filter (" + spawn.ErrNoFilter.Error() + ")",
			[]string{audited}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := tt.born.Closed(tt.how, tt.sealed)
			want := []string{tt.on, tt.off, tt.left}
			got := []string{strings.Join(l.List(spawn.IsOn), ", "), strings.Join(l.List(spawn.IsOff), ", "), strings.Join(l.List(spawn.IsMissing), ", ")}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("on, off, left out (-want +got):\n%s", diff)
			}
			k := &check{out: io.Discard, layers: l, config: Config{Setup: ipc.Setup{Seal: tt.how}}}
			remains := k.escapes()
			has := func(start string) bool {
				return slices.ContainsFunc(remains, func(line string) bool { return strings.HasPrefix(line, start) })
			}
			for _, start := range tt.escapes {
				if !has(start) {
					t.Errorf("%q is not among what remains: %q", start, remains)
				}
			}
			for _, start := range tt.never {
				if has(start) {
					t.Errorf("%q is among what remains: %q", start, remains)
				}
			}
		})
	}
}
