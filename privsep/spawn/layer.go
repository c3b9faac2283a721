package spawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// part is a part of the workers' confinement.
type part uint8

// The parts, in the order in which they are entered and reported.
const (
	descriptorTable part = iota
	userNamespace
	ipcNamespace
	networkNamespace
	ownRoot
	pidNamespace
	emptyBounding
	noNewPrivs
	noGroups
	callFilter
	landlock
	landlockTCP
	allParts // how many there are
)

// parts describes each of them. The log's words, the table of --check-confinement,
// what require_confinement ends a start for, and the namespaces that processes must
// find themselves in come from here.
var parts = [allParts]struct {
	name   string
	lacked string  // how a start without root may lack it, in a word of package ipc; "": every start has it
	flag   uintptr // of the namespace that it is
	link   string  // that shows it, in /proc/PID/ns
}{
	descriptorTable:  {name: "descriptor table of their own"},
	userNamespace:    {name: "user namespace", flag: unix.CLONE_NEWUSER, link: "user"}, // one for each process; no thread can enter it
	ipcNamespace:     {name: "IPC namespace", flag: unix.CLONE_NEWIPC, link: "ipc"},
	networkNamespace: {name: "network namespace", flag: unix.CLONE_NEWNET, link: "net"},
	ownRoot:          {name: "root of their own", lacked: ipc.PartUnpermitted, flag: unix.CLONE_NEWNS, link: "mnt"},
	pidNamespace:     {name: "PID namespace", lacked: ipc.PartUnpermitted, flag: unix.CLONE_NEWPID, link: "pid"},
	emptyBounding:    {name: "empty capability bounding set", lacked: ipc.PartUnpermitted},
	noNewPrivs:       {name: "no_new_privs"},
	noGroups:         {name: "dropping of supplementary groups", lacked: ipc.PartOfRoot},
	callFilter:       {name: "system call filter"},
	landlock:         {name: "Landlock"},
	landlockTCP:      {name: "Landlock for TCP"},
}

// unasked returns why a part is switched off; "" when it is not.
func (o *Options) unasked(p part) string {
	switch {
	case p == descriptorTable && o.Switches.DisableUnshareFiles:
		return "disable_unshare_files"
	case p == ipcNamespace && o.Switches.DisableUnshareSysV:
		return "disable_unshare_sysv"
	case p == ownRoot && o.sharedRoot:
		return "shared"
	case p == pidNamespace && o.OneClient && !o.Switches.RequireConfinement:
		return "one client" // whose worker is not worth two processes
	case p == callFilter && o.Switches.AuditConfinement:
		return "audit_confinement: it logs, and kills nobody"
	}
	return ""
}

// layers is what became of each part.
type layers [allParts]layer

// layer is what became of one. The zero value is one that needs no mention: it is as
// ever, or not known yet.
type layer struct {
	is  string // PartOn, PartOff or PartMissing of package ipc
	as  string // what people are told of it instead of its name, when it is on
	why error  // not on
}

// found returns the layer for a part that is there, unless err says why it is not.
func found(err error) layer {
	if err != nil {
		return layer{is: ipc.PartMissing, why: err}
	}
	return layer{is: ipc.PartOn}
}

// coversAll reports whether everything that is on in other is on in l.
func (l layers) coversAll(other layers) bool {
	for p := range l {
		if other[p].is == ipc.PartOn && l[p].is != ipc.PartOn {
			return false
		}
	}
	return true
}

// list returns what the log says of those that stand so.
func (l layers) list(is string) (words []string) {
	for p, one := range l {
		switch {
		case one.is != is:
		case one.as != "":
			words = append(words, one.as)
		case one.why == nil || errors.Is(one.why, unix.EPERM) || one.why == errNoNest: // that an ordinary user may not is no news
			words = append(words, parts[p].name)
		default:
			words = append(words, fmt.Sprintf("%s (%v)", parts[p].name, one.why))
		}
	}
	return words
}

var (
	errUncaged    = errors.New("this build is for measuring")
	errNoNest     = errors.New("without a user namespace")
	errNoFilter   = errors.New("the process has none that kills")
	errNoLandlock = errors.New("this kernel has none, or lsm= does not name it: Linux 5.13")
	errNoTCP      = errors.New("workers connect UNIX sockets, and this kernel's knows no TCP: Linux 6.7")
)

// closed returns the layers of a process that was told how to close the sandbox, and
// reported what it came to.
func (l layers) closed(how ipc.Seal, s security.Sealed) layers {
	filter, denied := s.Words()
	switch {
	case l[callFilter].is == ipc.PartOff:
	case s.Filter && !s.Audit:
		l[callFilter] = layer{is: ipc.PartOn, as: filter}
	default:
		l[callFilter] = found(errNoFilter)
	}
	l[landlock] = layer{is: ipc.PartOn, as: denied}
	if s.Landlock == 0 {
		l[landlock] = found(errNoLandlock)
	}
	if how&ipc.SealUnix != 0 && s.Denies&security.DeniesTCP == 0 {
		l[landlockTCP] = found(errNoTCP)
	}
	return l
}

// CheckRequired refuses a start that lacks, or has switched off, a part of the
// confinement, where all of it is required. Every way to start calls it before the
// first worker is started. What only a worker finds out, the worker refuses to serve
// for (ipc.SealRequire).
func (s *Spawner) CheckRequired() error {
	lacks := append(s.layers.list(ipc.PartMissing), s.layers.list(ipc.PartOff)...)
	if !s.Switches.RequireConfinement || len(lacks) == 0 {
		return nil
	}
	return errs.New(errs.Unsupported, "part of the confinement can't be had by this start, and all of it is required (require_confinement): %s", strings.Join(lacks, ", ")).
		WithHint("schedrestd --check-confinement shows each part and what would give it; without require_confinement the rest is used")
}

// Announce logs, once, which parts of the confinement are on and which are not. A
// client of inetd is told only of what this kind of start should have.
func (s *Spawner) Announce(sealed security.Sealed) {
	layers := s.layers.closed(s.Seal, sealed)
	attrs := []any{"on", strings.Join(layers.list(ipc.PartOn), ", ")}
	if off := layers.list(ipc.PartOff); len(off) > 0 {
		attrs = append(attrs, "off", strings.Join(off, ", "))
	}
	if left := layers.list(ipc.PartMissing); len(left) > 0 {
		attrs = append(attrs, "left_out", strings.Join(left, ", "))
	}
	level := slog.LevelInfo
	for p, one := range layers {
		if one.is == ipc.PartMissing && (!s.OneClient || s.Root || parts[p].lacked == "") {
			level = slog.LevelWarn
		}
	}
	s.Log.Log(context.Background(), level, "confinement of the workers", attrs...)
}

// PartFacts returns the parts for the page of --check-confinement.
func (s *Spawner) PartFacts(sealed security.Sealed) (facts []string) {
	for p, one := range s.layers.closed(s.Seal, sealed) {
		if one.is == ipc.PartMissing && !s.Root {
			one.is = cmp.Or(parts[p].lacked, one.is)
		}
		if one.why != nil {
			one.as = one.why.Error()
		}
		if one.is != "" {
			facts = append(facts, strings.Join([]string{ipc.FactPart + "=" + parts[p].name, one.is, one.as}, "\t"))
		}
	}
	return facts
}
