package privsep

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
)

// lacking is what of the cage can't be had by this start. sealed is what workers do to themselves; "" where none has done it yet.
func (s *spawner) lacking(c Config, who service, sealed string) []absent {
	missing := slices.Clone(s.missing)
	// A service manager that sets a group has it in the list, too.
	if !who.root && slices.ContainsFunc(who.Groups, func(gid uint32) bool { return gid != who.GID }) {
		missing = append(missing, absent{"dropping of supplementary groups", unix.EPERM})
	}
	switch {
	case sealed == "":
	case !strings.Contains(sealed, "Landlock ") || strings.Contains(sealed, "no Landlock"):
		missing = append(missing, absent{"Landlock", errNoLandlock})
	case c.seal()&ipc.SealUnix != 0 && !strings.Contains(sealed, "TCP"):
		missing = append(missing, absent{"Landlock for TCP", errNoTCP})
	}
	return missing
}

var (
	errNoLandlock = errors.New("this kernel has none, or lsm= does not name it: Linux 5.13")
	errNoTCP      = errors.New("workers connect UNIX sockets, and this kernel's knows no TCP: Linux 6.7")
)

// satisfy ends a start that leaves out, or has switched off, a part of the cage, where all of it is required. Every way to start
// comes by here before the first worker is started. What only a worker finds out, it refuses to serve
// for (ipc.SealRequire).
func (s *spawner) satisfy(c Config, who service) error {
	if !c.Switches.RequireConfinement {
		return nil
	}
	var lacks []string
	if missing := s.lacking(c, who, ""); len(missing) > 0 {
		lacks = append(lacks, leftOut(missing))
	}
	lacks = append(lacks, s.off...)
	if c.Switches.AuditConfinement {
		lacks = append(lacks, "a filter that kills (audit_confinement)")
	}
	if len(lacks) == 0 {
		return nil
	}
	return errs.New(errs.Unsupported, "part of the confinement can't be had by this start, and all of it is required (require_confinement): %s", strings.Join(lacks, ", ")).
		WithHint("%s; schedrestd --check-confinement shows each part, and without require_confinement the rest is used", remedy(who))
}

// remedy is what a start takes that has all of the cage.
func remedy(who service) string {
	if who.root {
		return "root needs CAP_SYS_ADMIN and CAP_SETPCAP at the start, which it gives up (CapabilityBoundingSet= in the unit, --cap-add and --security-opt in a container)"
	}
	return "start as root with -u USER; or let ordinary users make user namespaces and mount in them (user.max_user_namespaces, kernel.unprivileged_userns_clone, " +
		"kernel.apparmor_restrict_unprivileged_userns, RestrictNamespaces= in the unit), and start in no supplementary group"
}

// announce logs, once, what of the cage is on and what is not. To each client of an inetd it is told
// only where more is left out than always is by who is not root.
func (s *spawner) announce(c Config, who service, sealed string) {
	attrs := []any{"on", strings.Join(append(slices.Clone(s.on), sealed), ", ")}
	if len(s.off) > 0 {
		attrs = append(attrs, "off", strings.Join(s.off, ", "))
	}
	level := slog.LevelInfo
	if missing := s.lacking(c, who, sealed); len(missing) > 0 {
		attrs = append(attrs, "left_out", leftOut(missing))
		if !c.Setup.Inetd || slices.ContainsFunc(missing, func(a absent) bool { return !a.usual(who) }) {
			level = slog.LevelWarn
		}
	}
	c.Log.Log(context.Background(), level, "confinement of the workers", attrs...)
}

// rootOnly are parts that others than root can have only where user namespaces, and mounts in them, are permitted to them (the last not even
// there), and whose absence is therefore no fault of a start without root.
var rootOnly = []string{"root of their own", "PID namespace", "empty capability bounding set", "dropping of supplementary groups"}

// takes says what a start without root lacks for it.
func (a absent) takes() string {
	if a.part == rootOnly[len(rootOnly)-1] {
		return "takes a start as root"
	}
	return "not permitted to this user, here: takes a start as root"
}

// usual tells whether a start of this kind never has it.
func (a absent) usual(who service) bool { return !who.root && slices.Contains(rootOnly, a.part) }
