package proof

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/security/sandbox"
)

// TestSmokeSet checks that the cases in smokeSet exist.
func TestSmokeSet(t *testing.T) {
	for _, name := range smokeSet {
		if !slices.Contains(sandbox.DeathTests(), name) {
			t.Errorf("no case is called %q", name)
		}
	}
}

// TestAsked checks that Requested returns true only for the arguments of a
// proof or a case.
func TestAsked(t *testing.T) {
	for args, want := range map[string]bool{
		"schedrestd-worker":                          false,
		"schedrestd-worker prove 0 smoke":            false,
		"schedrestd-worker prove 0 smoke 20s":        true,
		"schedrestd-worker x prove 0 page 20s part=": true,
		"schedrestd-worker death-test 0 bpf":         true,
		"schedrestd-worker death-test 0":             false,
		"prove 0 smoke 20s":                          false,
	} {
		if got := Requested(strings.Fields(args)); got != want {
			t.Errorf("%s: %t", args, got)
		}
	}
}

// TestSandboxText checks that readSandbox reads what sandboxText writes,
// and nothing else.
func TestSandboxText(t *testing.T) {
	for _, s := range []sandbox.Layers{{}, {Filter: true}, {Filter: true, Audit: true, Landlock: 4, Denies: 255}} {
		if got, ok := readSandbox(sandboxText(s)); !ok || got != s {
			t.Errorf("%q is read as %+v, %t", sandboxText(s), got, ok)
		}
	}
	good := sandboxText(sandbox.Layers{Filter: true})
	for _, bad := range []string{"", "nothing", " " + good, good + " ", good + "0", good[:len(good)-1] + "256", good[:len(good)-1] + "00"} {
		if s, ok := readSandbox(bad); ok {
			t.Errorf("%q is read as %+v", bad, s)
		}
	}
}

// parts returns a fact for each named part. All these facts contain the given
// state and reason.
func parts(state string, reason string, names ...string) (facts []string) {
	for _, name := range names {
		facts = append(facts, strings.Join([]string{ipc.FactPart + "=" + name, state, reason}, "\t"))
	}
	return facts
}

// TestEscapesOfThePage checks that docs/design/TRUST.md and the page list the same
// remaining escapes.
func TestEscapesOfThePage(t *testing.T) {
	doc, err := os.ReadFile("../../docs/design/TRUST.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(doc), "\n## Escapes that remain\n\n")
	list, _, _ = strings.Cut(list, "\n\n## ")
	_, list, _ = strings.Cut(list, "\n\n")
	facts := append(parts(ipc.PartMissing, "", "network namespace", ownRoot, pidNamespace),
		query.FactLocal, query.FactDial+"=3", ipc.FactUID+"=900", ipc.FactTasks+"=4096", ipc.FactUnfit+"=would serve as root")
	escapes := strings.Join(append(newPage(io.Discard, ipc.SandboxUnix, sandbox.Layers{}, facts).escapes(), newPage(io.Discard, ipc.SandboxUnix|ipc.SandboxAudit, sandbox.Layers{}, append(facts, ipc.FactRoot)).escapes()...), "\n")
	rows := []struct{ page, check string }{
		{"- a flaw of the kernel", "bugs in the kernel"},
		{"- the dispatcher and the resolver keep", "the dispatcher and the resolver"},
		{"- before Linux 6.7", "this kernel's Landlock does not restrict TCP"},
		{"- without root", "processes of the user who started the gateway"},
		{"- a worker's root directory contains the machine's /proc", "it does not have its own root and /proc"},
		{"- always: processes of the workers' user", "processes of uid 900 outside the sandbox"},
		{"- a listener of multipath TCP", "multipath TCP"},
		{"- before Linux 5.13", "the machine's files, through a hole in the filter"},
		{"- connections to a daemon: only a worker's number of descriptors", "its 3 descriptors limit how many are open"},
		{"- before Linux 6.14", "4096 threads per user"},
		{"- timing: ", "timing side channels: "},
		{"- [scopes]", "scopes and the rules for tokens"},
		{"- `audit_confinement`", "(audit_confinement)"},
	}
	if n := strings.Count("\n"+list, "\n- "); n != len(rows) {
		t.Errorf("the page has %d escapes, and this test knows %d:\n%s", n, len(rows), list)
	}
	for _, row := range rows {
		if !strings.Contains(list, row.page) || !strings.Contains(escapes, row.check) {
			t.Errorf("%q of the page, %q of the check:\n%s\n\n%s", row.page, row.check, list, escapes)
		}
	}
}

// fullSandbox is a sandbox with all layers.
var fullSandbox = sandbox.Layers{Filter: true, Landlock: 7, Denies: sandbox.DeniesFiles | sandbox.DeniesTCP}

// TestEscapes checks that the remaining escapes depend on the parts that are
// on.
func TestEscapes(t *testing.T) {
	const (
		network         = "the machine's network, through a hole in the filter:"
		files           = "the machine's files, through a hole in the filter and in Landlock:"
		filesNoLandlock = "the machine's files, through a hole in the filter:"
		reconnect       = "any TCP address that the dispatcher can reach, by reconnecting"
		audited         = "every system call that the filter should kill for (audit_confinement)"
	)
	all := parts(ipc.PartOn, "", "network namespace", ownRoot, pidNamespace)
	for name, tt := range map[string]struct {
		facts           []string
		options         ipc.SandboxOptions
		enforced        sandbox.Layers
		escapes, absent []string
	}{
		"all on":                       {all, 0, fullSandbox, nil, []string{network, files, filesNoLandlock, reconnect, audited}},
		"no namespaces":                {parts(ipc.PartUnpermitted, "", "network namespace", ownRoot), 0, fullSandbox, []string{network, files}, []string{reconnect, audited, filesNoLandlock}},
		"a Landlock that knows no TCP": {all, ipc.SandboxUnix, sandbox.Layers{Filter: true, Landlock: 1}, []string{reconnect}, []string{audited}},
		"no Landlock":                  {nil, 0, sandbox.Layers{Filter: true}, []string{filesNoLandlock}, []string{files, reconnect}},
		"a filter that logs":           {all, ipc.SandboxAudit, sandbox.Layers{Filter: true, Audit: true, Landlock: 7}, []string{audited}, []string{files, filesNoLandlock}},
	} {
		remaining := newPage(io.Discard, tt.options, tt.enforced, tt.facts).escapes()
		has := func(start string) bool {
			return slices.ContainsFunc(remaining, func(line string) bool { return strings.HasPrefix(line, start) })
		}
		for _, start := range tt.escapes {
			if !has(start) {
				t.Errorf("%s: %q is not among the remaining escapes: %q", name, start, remaining)
			}
		}
		for _, start := range tt.absent {
			if has(start) {
				t.Errorf("%s: %q is among the remaining escapes: %q", name, start, remaining)
			}
		}
	}
}

// TestRemedy checks the remedies for each kernel error, for a supplementary
// group, for missing kernel features, and for a start as root.
func TestRemedy(t *testing.T) {
	unpermitted := parts(ipc.PartUnpermitted, "without a user namespace", ownRoot)
	for err, want := range map[error]string{unix.ENOSPC: "user.max_user_namespaces", unix.EACCES: "apparmor", unix.EROFS: "/proc", unix.EPERM: "unprivileged_userns_clone",
		unix.EINVAL: "CONFIG_USER_NS", nil: "mount"} {
		facts := unpermitted
		if err != nil {
			facts = append(parts(ipc.PartMissing, err.Error(), "user namespace"), facts...)
		}
		if got := newPage(io.Discard, 0, fullSandbox, facts).remedy(); !strings.Contains(got, want) || strings.Contains(got, "max_user_namespaces") != (err == unix.ENOSPC) {
			t.Errorf("%v: %q", err, got)
		}
	}
	for name, tt := range map[string]struct {
		facts    []string
		enforced sandbox.Layers
		want     string
	}{
		"a group":               {parts(ipc.PartOfRoot, "", "dropping of supplementary groups"), fullSandbox, "start as root with -u USER; or start without supplementary groups"},
		"what the kernel lacks": {nil, sandbox.Layers{Filter: true}, ""},
		"as root":               {append(unpermitted, ipc.FactRoot), fullSandbox, "give root CAP_SYS_ADMIN and CAP_SETPCAP at the start, which the gateway then drops (CapabilityBoundingSet= in the unit, --cap-add and --security-opt in a container)"},
	} {
		if got := newPage(io.Discard, 0, tt.enforced, tt.facts).remedy(); got != tt.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
