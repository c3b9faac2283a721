package spawn

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/security"
)

// Part is a part of the workers' cage.
type Part uint8

// The parts, in the order in which they are entered, and people told of them.
const (
	descriptorTable Part = iota
	userNamespace
	IpcNamespace
	NetworkNamespace
	OwnRoot
	PidNamespace
	emptyBounding
	NoNewPrivs
	noGroups
	CallFilter
	Landlock
	landlockTCP
	allParts // how many there are
)

// Parts is what there is to each of them. The log's words, the table of --check-confinement, what require_confinement ends a
// start for, and what processes are to find of their namespaces are read off it.
var Parts = [allParts]struct {
	Name    string
	Reach   reach
	unasked func(Options) string // why it is not asked for; "": it is
	flag    uintptr              // of the namespace that it is
	link    string               // that shows it, in /proc/PID/ns
	enter   func(*Spawner) error // done once, as root, by the thread that processes are born of; nil: it comes another way
	Escape  string               // what is left to who captures a worker where it is not on
}{
	descriptorTable: {Name: "descriptor table of their own",
		unasked: func(o Options) string { return Because(o.Switches.DisableUnshareFiles, "disable_unshare_files") }},
	userNamespace: {Name: "user namespace", flag: unix.CLONE_NEWUSER, link: "user"}, // for each process one, and no thread can enter it
	IpcNamespace: {Name: "IPC namespace", flag: unix.CLONE_NEWIPC, link: "ipc",
		unasked: func(o Options) string { return Because(o.Switches.DisableUnshareSysV, "disable_unshare_sysv") },
		enter:   func(*Spawner) error { return unix.Unshare(unix.CLONE_NEWIPC) }},
	NetworkNamespace: {Name: "network namespace", flag: unix.CLONE_NEWNET, link: "net",
		enter:  func(*Spawner) error { return unix.Unshare(unix.CLONE_NEWNET) },
		Escape: "one that found a hole in the filter would be in the machine's network: there is no network namespace"},
	OwnRoot: {Name: "root of their own", Reach: WherePermitted, flag: unix.CLONE_NEWNS, link: "mnt",
		unasked: func(o Options) string { return Because(o.sharedRoot, "shared") },
		enter:   (*Spawner).enterRoot},
	PidNamespace: {Name: "PID namespace", Reach: WherePermitted, flag: unix.CLONE_NEWPID, link: "pid",
		unasked: func(o Options) string { // his worker is not worth two processes
			return Because(o.OneClient && !o.Switches.RequireConfinement, "one client")
		},
		enter:  (*Spawner).enterPIDs,
		Escape: "one that found a hole in the filter, and in Landlock where that denies signals, could signal its user's other processes: there is no PID namespace"},
	emptyBounding: {Name: "empty capability bounding set", Reach: WherePermitted},
	NoNewPrivs:    {Name: "no_new_privs"},
	noGroups:      {Name: "dropping of supplementary groups", Reach: rootAlone},
	CallFilter: {Name: "system call filter",
		unasked: func(o Options) string {
			return Because(o.Switches.AuditConfinement, "audit_confinement: it logs, and kills nobody")
		},
		Escape: "all that the filter should kill for (audit_confinement)"},
	Landlock: {Name: "Landlock"},
	landlockTCP: {Name: "Landlock for TCP",
		Escape: "a TCP connection that it was given can be undone and made anew to any address that the parent reaches: this kernel's Landlock knows no TCP (Linux 6.7)"},
}

// reach is which starts can have a part.
type reach uint8

const (
	everyStart     reach = iota
	WherePermitted       // root, and others where user namespaces, and mounts in them, are permitted to them
	rootAlone
)

// Usual tells whether the absence of p is no fault of this kind of start.
func (p Part) Usual(root bool) bool { return !root && Parts[p].Reach != everyStart }

// Layers is what became of each part.
type Layers [allParts]layer

// layer is what became of one.
type layer struct {
	Is  standing
	As  string // on: what people are told of it instead of its name
	Why error  // not on
}

type standing uint8

const (
	untold    standing = iota // it is as ever, or not known yet: nobody has to hear of it
	IsOn                      //
	IsOff                     // it was not asked for
	IsMissing                 // it can't be had here
)

// Found is a part that there is, unless it could not be had.
func Found(err error) layer {
	if err != nil {
		return layer{Is: IsMissing, Why: err}
	}
	return layer{Is: IsOn}
}

// Has tells whether all of these are on.
func (l Layers) Has(list ...Part) bool {
	for _, p := range list {
		if l[p].Is != IsOn {
			return false
		}
	}
	return true
}

// stand reports whether each part stands as it does in other.
func (l Layers) stand(other Layers) bool {
	for p := range l {
		if l[p].Is != other[p].Is {
			return false
		}
	}
	return true
}

// Lacks tells whether p is not on, and somebody has to hear of it.
func (l Layers) Lacks(p Part) bool { return l[p].Is == IsOff || l[p].Is == IsMissing }

// Any tells whether one that stands so is such a part.
func (l Layers) Any(is standing, such func(Part) bool) bool {
	for p, one := range l {
		if one.Is == is && such(Part(p)) {
			return true
		}
	}
	return false
}

// List is what the log has of those that stand so.
func (l Layers) List(is standing) (words []string) {
	for p, one := range l {
		switch {
		case one.Is != is:
		case one.As != "":
			words = append(words, one.As)
		case one.Why == nil || errors.Is(one.Why, unix.EPERM) || one.Why == ErrNoNest: // that an ordinary user may not is no news
			words = append(words, Parts[p].Name)
		default:
			words = append(words, fmt.Sprintf("%s (%v)", Parts[p].Name, one.Why))
		}
	}
	return words
}

var (
	errUncaged    = errors.New("this build is for measuring")
	ErrNoNest     = errors.New("without a user namespace")
	ErrNoFilter   = errors.New("the process has none that kills")
	ErrNoLandlock = errors.New("this kernel has none, or lsm= does not name it: Linux 5.13")
	ErrNoTCP      = errors.New("workers connect UNIX sockets, and this kernel's knows no TCP: Linux 6.7")
)

// Closed is the layers of a process that was told how to close it, and says what it came to.
func (l Layers) Closed(how ipc.Seal, s security.Sealed) Layers {
	filter, denied := s.Words()
	switch {
	case l[CallFilter].Is == IsOff:
	case s.Filter && !s.Audit:
		l[CallFilter] = layer{Is: IsOn, As: filter}
	default:
		l[CallFilter] = Found(ErrNoFilter)
	}
	l[Landlock] = layer{Is: IsOn, As: denied}
	if s.Landlock == 0 {
		l[Landlock] = Found(ErrNoLandlock)
	}
	if how&ipc.SealUnix != 0 && s.Denies&security.DeniesTCP == 0 {
		l[landlockTCP] = Found(ErrNoTCP)
	}
	return l
}

// Because is why, when it is so.
func Because(so bool, why string) string {
	if so {
		return why
	}
	return ""
}
