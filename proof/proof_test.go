package proof

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/security/seal"
)

// TestSmokeSet: the cases of each start exist.
func TestSmokeSet(t *testing.T) {
	for _, name := range smokeSet {
		if !slices.Contains(seal.Acts(), name) {
			t.Errorf("no case is called %q", name)
		}
	}
}

// TestAsked: only the arguments of a proof start one.
func TestAsked(t *testing.T) {
	for args, want := range map[string]bool{
		"schedrestd-worker":                          false,
		"schedrestd-worker prove 0 smoke":            false,
		"schedrestd-worker prove 0 smoke 20s":        true,
		"schedrestd-worker x prove 0 page 20s part=": true,
		"schedrestd-worker act 0 bpf":                true,
		"schedrestd-worker act 0":                    false,
		"prove 0 smoke 20s":                          false,
	} {
		if got := Asked(strings.Fields(args)); got != want {
			t.Errorf("%s: %t", args, got)
		}
	}
}

// parts returns facts about parts with that state.
func parts(is string, why string, names ...string) (facts []string) {
	for _, name := range names {
		facts = append(facts, strings.Join([]string{ipc.FactPart + "=" + name, is, why}, "\t"))
	}
	return facts
}

// TestEscapesOfThePage: docs/TRUST.md and the check list the same remaining
// escapes.
func TestEscapesOfThePage(t *testing.T) {
	doc, err := os.ReadFile("../docs/TRUST.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(doc), "\n**Escapes that remain.** ")
	list, _, _ = strings.Cut(list, "\n\n**")
	_, list, _ = strings.Cut(list, "\n\n")
	facts := append(parts(ipc.PartMissing, "", "network namespace", ownRoot, pidNamespace, "system call filter", landlock, "Landlock for TCP"),
		ipc.FactLocal, ipc.FactDial+"=3", ipc.FactUID+"=900", ipc.FactTasks+"=4096", ipc.FactUnfit+"=would serve as root")
	said := strings.Join(append(newPage(io.Discard, ipc.SealUnix, facts).escapes(), newPage(io.Discard, ipc.SealUnix, append(facts, ipc.FactRoot)).escapes()...), "\n")
	rows := []struct{ page, check string }{
		{"- a flaw of the kernel", "bugs in the kernel"},
		{"- the dispatcher and the resolver keep", "the dispatcher and the resolver"},
		{"- before Linux 6.7", "this kernel's Landlock does not restrict TCP"},
		{"- without root", "processes of the user who started the gateway"},
		{"- in inetd mode as root", "it does not have its own root and /proc"},
		{"- always: processes of the workers' user", "processes of uid 900 outside the sandbox"},
		{"- a listener of multipath TCP", "multipath TCP"},
		{"- before Linux 5.13", "the machine's files, through a hole in the filter"},
		{"- connections to a daemon: as many at a time as its descriptors", "its 3 descriptors limit how many are open"},
		{"- before Linux 6.14", "4096 threads per user"},
		{"- timing: ", "timing side channels: "},
		{"- `audit_confinement`", "(audit_confinement)"},
	}
	if n := strings.Count("\n"+list, "\n- "); n != len(rows) {
		t.Errorf("the page has %d, and %d are known here:\n%s", n, len(rows), list)
	}
	for _, row := range rows {
		if !strings.Contains(list, row.page) || !strings.Contains(said, row.check) {
			t.Errorf("%q of the page, %q of the check:\n%s\n\n%s", row.page, row.check, list, said)
		}
	}
}

// TestEscapes: the remaining escapes depend on the parts that are on.
func TestEscapes(t *testing.T) {
	const (
		network = "the machine's network, through a hole in the filter:"
		files   = "the machine's files, through a hole in the filter and in Landlock:"
		noMore  = "the machine's files, through a hole in the filter:"
		undone  = "any TCP address that the dispatcher can reach, by reconnecting"
		audited = "every system call that the filter should kill for (audit_confinement)"
	)
	all := parts(ipc.PartOn, "", "network namespace", ownRoot, pidNamespace, "system call filter", landlock)
	for name, tt := range map[string]struct {
		facts          []string
		escapes, never []string
	}{
		"all on":                       {all, nil, []string{network, files, noMore, undone, audited}},
		"no namespaces":                {append(parts(ipc.PartUnpermitted, "", "network namespace", ownRoot), parts(ipc.PartOn, "", landlock)...), []string{network, files}, []string{undone, audited, noMore}},
		"a Landlock that knows no TCP": {append(parts(ipc.PartMissing, "", "Landlock for TCP"), all...), []string{undone}, []string{audited}},
		"no Landlock":                  {parts(ipc.PartMissing, "", landlock), []string{noMore}, []string{files, undone}},
		"a filter that logs":           {append(parts(ipc.PartOff, "", "system call filter"), all[:3]...), []string{audited}, []string{files, noMore}},
	} {
		remains := newPage(io.Discard, 0, tt.facts).escapes()
		has := func(start string) bool {
			return slices.ContainsFunc(remains, func(line string) bool { return strings.HasPrefix(line, start) })
		}
		for _, start := range tt.escapes {
			if !has(start) {
				t.Errorf("%s: %q is not among what remains: %q", name, start, remains)
			}
		}
		for _, start := range tt.never {
			if has(start) {
				t.Errorf("%s: %q is among what remains: %q", name, start, remains)
			}
		}
	}
}

// TestRemedy: the remedy depends only on the kernel's error.
func TestRemedy(t *testing.T) {
	without := parts(ipc.PartUnpermitted, "without a user namespace", ownRoot)
	for err, want := range map[error]string{unix.ENOSPC: "user.max_user_namespaces", unix.EACCES: "apparmor", unix.EROFS: "/proc", unix.EPERM: "unprivileged_userns_clone",
		unix.EINVAL: "CONFIG_USER_NS", nil: "mount"} {
		facts := without
		if err != nil {
			facts = append(parts(ipc.PartMissing, err.Error(), "user namespace"), facts...)
		}
		if got := newPage(io.Discard, 0, facts).remedy(); !strings.Contains(got, want) || strings.Contains(got, "max_user_namespaces") != (err == unix.ENOSPC) {
			t.Errorf("%v: %q", err, got)
		}
	}
	for name, tt := range map[string]struct {
		facts []string
		want  string
	}{
		"a group":               {parts(ipc.PartOfRoot, "", "dropping of supplementary groups"), "start as root with -u USER; or start without supplementary groups"},
		"what the kernel lacks": {parts(ipc.PartMissing, "", landlock), ""},
		"as root":               {append(without, ipc.FactRoot), "give root CAP_SYS_ADMIN and CAP_SETPCAP at the start, which the gateway then drops (CapabilityBoundingSet= in the unit, --cap-add and --security-opt in a container)"},
	} {
		if got := newPage(io.Discard, 0, tt.facts).remedy(); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
