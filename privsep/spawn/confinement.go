package spawn

import (
	"context"
	"errors"
	"log/slog"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/security"
)

// CheckRequired ends a start that leaves out, or has switched off, a part of the cage, where all of it is required. Every way to start
// comes by here before the first worker is started. What only a worker finds out, it refuses to serve
// for (ipc.SealRequire).
func (s *Spawner) CheckRequired() error {
	if !s.Switches.RequireConfinement {
		return nil
	}
	lacks := append(s.Layers.List(IsMissing), s.Layers.List(IsOff)...)
	if len(lacks) == 0 {
		return nil
	}
	help := s.Layers.Remedy(s.Root)
	return errs.New(errs.Unsupported, "part of the confinement can't be had by this start, and all of it is required (require_confinement): %s", strings.Join(lacks, ", ")).
		WithHint("%sschedrestd --check-confinement shows each part, and without require_confinement the rest is used", Because(help != "", help+"; "))
}

// Remedy is what a start takes that has what this one could not have; "" where it lacks nothing that another start on this
// kernel has.
func (l Layers) Remedy(root bool) string {
	closed := l.Any(IsMissing, func(p Part) bool { return Parts[p].flag != 0 || p == emptyBounding })
	inGroups := l[noGroups].Is == IsMissing
	if !closed && !inGroups {
		return ""
	}
	if root {
		return "root needs CAP_SYS_ADMIN and CAP_SETPCAP at the start, which it gives up (CapabilityBoundingSet= in the unit, --cap-add and --security-opt in a container)"
	}
	return "start as root with -u USER; or " + Because(closed, permits(l[userNamespace].Why)) + Because(closed && inGroups, ", and ") +
		Because(inGroups, "start in no supplementary group")
}

// permits is what lets ordinary users have user namespaces and mounts in them, by what the kernel says to one who may not; nil: he
// has the namespace.
func permits(err error) string {
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS):
		return "raise user.max_user_namespaces, or the one that is used up of the limits beside it (sysctl user)"
	case errors.Is(err, unix.EACCES):
		return "have the security module let this user make user namespaces (kernel.apparmor_restrict_unprivileged_userns, or a profile for schedrestd; SELinux: user_namespace create)"
	case errors.Is(err, unix.EROFS):
		return "mount /proc so that it can be written (the ids of a user namespace are written there)"
	case errors.Is(err, unix.EPERM):
		return "let ordinary users make user namespaces (kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, RestrictNamespaces= in the unit, " +
			"--security-opt seccomp= in a container)"
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		return "take a kernel with user namespaces (CONFIG_USER_NS)"
	}
	return "let ordinary users mount in the user namespaces that they make (kernel.apparmor_restrict_unprivileged_userns, the service's or the container's security options)"
}

// Announce logs, once, what of the cage is on and what is not. To each client of an inetd it is told
// only where more is left out than always is by who is not root.
func (s *Spawner) Announce(sealed security.Sealed) {
	layers := s.Layers.Closed(s.Seal, sealed)
	attrs := []any{"on", strings.Join(layers.List(IsOn), ", ")}
	if off := layers.List(IsOff); len(off) > 0 {
		attrs = append(attrs, "off", strings.Join(off, ", "))
	}
	level := slog.LevelInfo
	if left := layers.List(IsMissing); len(left) > 0 {
		attrs = append(attrs, "left_out", strings.Join(left, ", "))
		if !s.OneClient || layers.Any(IsMissing, func(p Part) bool { return !p.Usual(s.Root) }) {
			level = slog.LevelWarn
		}
	}
	s.Log.Log(context.Background(), level, "confinement of the workers", attrs...)
}
