package confinement

import (
	"log/slog"
	"strings"
	"testing"

	"schedrestd/ipc"
	"schedrestd/security/sandbox"
)

var fullSandbox = sandbox.Layers{Filter: true, Landlock: 7, Denies: sandbox.DeniesFiles | sandbox.DeniesTCP}

// TestLog checks the log line if all parts are on, if a part is missing, if a
// part is switched off, and if the user has no permission for a part.
func TestLog(t *testing.T) {
	inherited := []ipc.Part{{Name: "IPC namespace", State: ipc.PartOn}, {Name: "no_new_privs"}}
	for name, tt := range map[string]struct {
		parts    []ipc.Part
		how      ipc.SandboxOptions
		enforced sandbox.Layers
		inetd    bool
		want     string
	}{
		"everything": {inherited, 0, fullSandbox, false, `level=INFO msg="confinement of the workers" on="IPC namespace, seccomp, Landlock 7 (files, TCP)"`},
		"audit": {inherited, ipc.SandboxAudit, sandbox.Layers{Filter: true, Audit: true, Landlock: 7}, false,
			`level=INFO msg="confinement of the workers" on="IPC namespace, Landlock 7 ()" off="system call filter (audit_confinement: it only logs)"`},
		"no Landlock": {inherited, 0, sandbox.Layers{Filter: true}, true,
			`level=WARN msg="confinement of the workers" on="IPC namespace, seccomp" unavailable="Landlock (needs Linux 5.13 and landlock in lsm=)"`},
		"no filter, and TCP": {inherited, ipc.SandboxUnix, sandbox.Layers{Landlock: 1, Denies: sandbox.DeniesFiles}, false,
			`level=WARN msg="confinement of the workers" on="IPC namespace, Landlock 1 (files)" unavailable="system call filter (not installed, or it only logs), Landlock for TCP (needs Linux 6.7, since workers connect to UNIX sockets)"`},
		"no TCP, which is not connected": {inherited, 0, sandbox.Layers{Filter: true, Landlock: 1, Denies: sandbox.DeniesFiles}, false,
			`level=INFO msg="confinement of the workers" on="IPC namespace, seccomp, Landlock 1 (files)"`},
		"no permission": {[]ipc.Part{{Name: "PID namespace", State: ipc.PartUnpermitted, Reason: "operation not permitted"}}, 0, fullSandbox, false,
			`level=WARN msg="confinement of the workers" on="seccomp, Landlock 7 (files, TCP)" unavailable="PID namespace"`},
		"no permission, for one client": {[]ipc.Part{{Name: "PID namespace", State: ipc.PartUnpermitted, Reason: "no space left on device"}}, 0, fullSandbox, true,
			`level=INFO msg="confinement of the workers" on="seccomp, Landlock 7 (files, TCP)" unavailable="PID namespace (no space left on device)"`},
	} {
		out := new(strings.Builder)
		log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		Log(log, AllParts(tt.parts, tt.how, tt.enforced), tt.inetd)
		if got := strings.TrimSpace(out.String()); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}
