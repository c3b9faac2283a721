// Package confinement describes the confinement of the workers, for the log and
// for the page that --check-confinement prints. The confinement consists of
// parts, such as namespaces and a system call filter. The parent reports the
// parts that workers inherit, and each worker reports how it closed its
// sandbox.
package confinement

import (
	"context"
	"log/slog"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/security/sandbox"
)

// The names of the parts that a worker sets up itself. It inherits all other
// parts.
const (
	CallFilter  = "system call filter"
	Landlock    = "Landlock"
	LandlockTCP = "Landlock for TCP"
)

// AllParts returns the inherited parts, followed by the parts that a worker
// sets up itself. The worker closed its sandbox with the given options, and
// reported s.
func AllParts(inherited []ipc.Part, options ipc.SandboxOptions, s sandbox.Layers) []ipc.Part {
	filter, denied := s.Describe()
	calls := ipc.Part{Name: CallFilter, State: ipc.PartOn, Reason: filter}
	switch {
	case options&ipc.SandboxAudit != 0:
		calls.State, calls.Reason = ipc.PartOff, "audit_confinement: it only logs"
	case !s.Filter || s.Audit:
		calls.State, calls.Reason = ipc.PartMissing, "not installed, or it only logs"
	}
	landlock := ipc.Part{Name: Landlock, State: ipc.PartOn, Reason: denied}
	if s.Landlock == 0 {
		landlock.State, landlock.Reason = ipc.PartMissing, "needs Linux 5.13 and landlock in lsm="
	}
	list := append(inherited[:len(inherited):len(inherited)], calls, landlock)
	if options&ipc.SandboxUnix != 0 && s.Denies&sandbox.DeniesTCP == 0 {
		list = append(list, ipc.Part{Name: LandlockTCP, State: ipc.PartMissing, Reason: "needs Linux 6.7, since workers connect to UNIX sockets"})
	}
	return list
}

// Log logs which parts are on, which are switched off and which are
// unavailable. The level is Warn if a part is unavailable. If inetd is true,
// the gateway was started for one client, possibly by an ordinary user. In that
// case, a part that needs root or a permission that the user lacks causes no
// warning.
func Log(log *slog.Logger, parts []ipc.Part, inetd bool) {
	var on, off, unavailable []string
	level := slog.LevelInfo
	for _, p := range parts {
		switch p.State {
		case ipc.PartOn:
			on = append(on, onText(p))
		case ipc.PartOff:
			off = append(off, absentText(p))
		case ipc.PartMissing, ipc.PartUnpermitted, ipc.PartOfRoot:
			unavailable = append(unavailable, absentText(p))
			if p.State == ipc.PartMissing || !inetd {
				level = slog.LevelWarn
			}
		}
	}
	attrs := []any{"on", strings.Join(on, ", ")}
	if off != nil {
		attrs = append(attrs, "off", strings.Join(off, ", "))
	}
	if unavailable != nil {
		attrs = append(attrs, "unavailable", strings.Join(unavailable, ", "))
	}
	log.Log(context.Background(), level, "confinement of the workers", attrs...)
}

func onText(p ipc.Part) string {
	if p.Reason != "" {
		return p.Reason
	}
	return p.Name
}

// absentText returns the name of a part, followed by the reason for its
// absence. It omits a reason that only says that this user has no permission.
func absentText(p ipc.Part) string {
	if p.Reason == "" || p.Reason == unix.EPERM.Error() || p.Reason == ipc.NoUserNamespace {
		return p.Name
	}
	return p.Name + " (" + p.Reason + ")"
}
