package privsep

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/security"
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

// TestAbsent: why each part is not there, by what was tried for it.
func TestAbsent(t *testing.T) {
	var mounts, none spawner
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
		s    *spawner
		p    part
		want layer
	}{
		{"a root in the only nest that had one", &mounts, ownRoot, found(errNoFilter)},
		{"what the one found has", &mounts, pidNamespace, found(nil)},
		{"the namespace when none was found", &none, userNamespace, found(unix.EUSERS)},
		{"… and another", &none, ipcNamespace, found(errNoNest)},
		{"nothing was tried", new(spawner), ipcNamespace, found(unix.EPERM)},
		{"… for the namespace, either", new(spawner), userNamespace, layer{}},
	} {
		if got := tt.s.enter(tt.p, Config{}, 0); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// TestPermits: what helps is said of what the kernel says, and of nothing else.
func TestPermits(t *testing.T) {
	for err, want := range map[error]string{unix.ENOSPC: "user.max_user_namespaces", unix.EACCES: "apparmor", unix.EROFS: "/proc", unix.EPERM: "unprivileged_userns_clone",
		unix.EINVAL: "CONFIG_USER_NS", nil: "mount"} {
		l := layers{ownRoot: found(errNoNest)}
		if err != nil {
			l[userNamespace] = found(err)
		}
		if got := l.remedy(service{}); !strings.Contains(got, want) || strings.Contains(got, "max_user_namespaces") != (err == unix.ENOSPC) {
			t.Errorf("%v: %q", err, got)
		}
	}
	const group, root = "start in no supplementary group", "start as root with -u USER; or "
	for name, tt := range map[string]struct {
		l    layers
		want string
	}{
		"a group":               {layers{noGroups: found(unix.EPERM)}, root + group},
		"what the kernel lacks": {layers{landlock: found(errNoLandlock)}, ""},
	} {
		if got := tt.l.remedy(service{}); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestLayers: what the log and the page have of a cage, by the facts that a process gives of itself.
func TestLayers(t *testing.T) {
	born := layers{ipcNamespace: found(nil), networkNamespace: found(unix.EPERM), ownRoot: found(unix.EINVAL), noNewPrivs: found(nil)}
	audit := born
	audit[callFilter] = new(spawner).enter(callFilter, Config{Switches: ipc.Switches{AuditConfinement: true}}, 0)
	const (
		network = "one that found a hole in the filter would be in"
		files   = "one that found a hole in the filter and in Landlock would see"
		noMore  = "one that found a hole in the filter would see"
		undone  = "a TCP connection that it was given can be undone"
		audited = "all that the filter should kill for (audit_confinement)"
	)
	for _, tt := range []struct {
		name           string
		born           layers
		how            ipc.Seal
		sealed         security.Sealed
		on, off, left  string
		escapes, never []string
	}{
		{"all that a process has", born, ipc.SealUnix, security.Sealed{Filter: true, Landlock: 4, Denies: security.DeniesFiles | security.DeniesTCP},
			"IPC namespace, no_new_privs, seccomp, Landlock 4 (files, TCP)", "", "network namespace, root of their own (invalid argument)",
			[]string{network, files}, []string{undone, audited, noMore}},
		{"a Landlock that knows no TCP", born, ipc.SealUnix, security.Sealed{Filter: true, Landlock: 3, Denies: security.DeniesFiles},
			"IPC namespace, no_new_privs, seccomp, Landlock 3 (files)", "", "network namespace, root of their own (invalid argument), Landlock for TCP (" + errNoTCP.Error() + ")",
			[]string{undone}, []string{audited}},
		{"… before a worker that connects nothing", born, 0, security.Sealed{Filter: true, Landlock: 3, Denies: security.DeniesFiles},
			"IPC namespace, no_new_privs, seccomp, Landlock 3 (files)", "", "network namespace, root of their own (invalid argument)",
			nil, []string{undone}},
		{"no Landlock", born, 0, security.Sealed{Filter: true},
			"IPC namespace, no_new_privs, seccomp", "", "network namespace, root of their own (invalid argument), Landlock (" + errNoLandlock.Error() + ")",
			[]string{noMore}, []string{undone, files}},
		{"a filter that logs", audit, 0, security.Sealed{Filter: true, Audit: true, Landlock: 1, Denies: security.DeniesFiles},
			"IPC namespace, no_new_privs, Landlock 1 (files)", "system call filter (audit_confinement: it logs, and kills nobody)", "network namespace, root of their own (invalid argument)",
			[]string{audited}, nil},
		{"a filter that logs, and nobody asked for that", born, 0, security.Sealed{Filter: true, Audit: true, Landlock: 1, Denies: security.DeniesFiles},
			"IPC namespace, no_new_privs, Landlock 1 (files)", "", "network namespace, root of their own (invalid argument), system call filter (" + errNoFilter.Error() + ")",
			[]string{audited}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := tt.born.closed(tt.how, tt.sealed)
			want := []string{tt.on, tt.off, tt.left}
			got := []string{strings.Join(l.list(isOn), ", "), strings.Join(l.list(isOff), ", "), strings.Join(l.list(isMissing), ", ")}
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
