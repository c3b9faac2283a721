package privsep

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/security"
)

// part is a part of the workers' cage.
type part uint8

// The parts, in the order in which they are entered, and people told of them.
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

// parts is what there is to each of them. The log's words, the table of --check-confinement, what require_confinement ends a
// start for, and what processes are to find of their namespaces are read off it.
var parts = [allParts]struct {
	name    string
	reach   reach
	unasked func(options) string // why it is not asked for; "": it is
	flag    uintptr              // of the namespace that it is
	link    string               // that shows it, in /proc/PID/ns
	enter   func(*spawner) error // done once, as root, by the thread that processes are born of; nil: it comes another way
	escape  string               // what is left to who captures a worker where it is not on
}{
	descriptorTable: {name: "descriptor table of their own",
		unasked: func(o options) string { return because(o.Switches.DisableUnshareFiles, "disable_unshare_files") }},
	userNamespace: {name: "user namespace", flag: unix.CLONE_NEWUSER, link: "user"}, // for each process one, and no thread can enter it
	ipcNamespace: {name: "IPC namespace", flag: unix.CLONE_NEWIPC, link: "ipc",
		unasked: func(o options) string { return because(o.Switches.DisableUnshareSysV, "disable_unshare_sysv") },
		enter:   func(*spawner) error { return unix.Unshare(unix.CLONE_NEWIPC) }},
	networkNamespace: {name: "network namespace", flag: unix.CLONE_NEWNET, link: "net",
		enter:  func(*spawner) error { return unix.Unshare(unix.CLONE_NEWNET) },
		escape: "one that found a hole in the filter would be in the machine's network: there is no network namespace"},
	ownRoot: {name: "root of their own", reach: wherePermitted, flag: unix.CLONE_NEWNS, link: "mnt",
		unasked: func(o options) string { return because(o.sharedRoot, "shared") },
		enter:   (*spawner).enterRoot},
	pidNamespace: {name: "PID namespace", reach: wherePermitted, flag: unix.CLONE_NEWPID, link: "pid",
		unasked: func(o options) string { // his worker is not worth two processes
			return because(o.OneClient && !o.Switches.RequireConfinement, "one client")
		},
		enter:  (*spawner).enterPIDs,
		escape: "one that found a hole in the filter, and in Landlock where that denies signals, could signal its user's other processes: there is no PID namespace"},
	emptyBounding: {name: "empty capability bounding set", reach: wherePermitted},
	noNewPrivs:    {name: "no_new_privs"},
	noGroups:      {name: "dropping of supplementary groups", reach: rootAlone},
	callFilter: {name: "system call filter",
		unasked: func(o options) string {
			return because(o.Switches.AuditConfinement, "audit_confinement: it logs, and kills nobody")
		},
		escape: "all that the filter should kill for (audit_confinement)"},
	landlock: {name: "Landlock"},
	landlockTCP: {name: "Landlock for TCP",
		escape: "a TCP connection that it was given can be undone and made anew to any address that the parent reaches: this kernel's Landlock knows no TCP (Linux 6.7)"},
}

// reach is which starts can have a part.
type reach uint8

const (
	everyStart     reach = iota
	wherePermitted       // root, and others where user namespaces, and mounts in them, are permitted to them
	rootAlone
)

// usual tells whether the absence of p is no fault of this kind of start.
func (p part) usual(root bool) bool { return !root && parts[p].reach != everyStart }

// layers is what became of each part.
type layers [allParts]layer

// layer is what became of one.
type layer struct {
	is  standing
	as  string // on: what people are told of it instead of its name
	why error  // not on
}

type standing uint8

const (
	untold    standing = iota // it is as ever, or not known yet: nobody has to hear of it
	isOn                      //
	isOff                     // it was not asked for
	isMissing                 // it can't be had here
)

// found is a part that there is, unless it could not be had.
func found(err error) layer {
	if err != nil {
		return layer{is: isMissing, why: err}
	}
	return layer{is: isOn}
}

// has tells whether all of these are on.
func (l layers) has(list ...part) bool {
	for _, p := range list {
		if l[p].is != isOn {
			return false
		}
	}
	return true
}

// stand reports whether each part stands as it does in other.
func (l layers) stand(other layers) bool {
	for p := range l {
		if l[p].is != other[p].is {
			return false
		}
	}
	return true
}

// lacks tells whether p is not on, and somebody has to hear of it.
func (l layers) lacks(p part) bool { return l[p].is == isOff || l[p].is == isMissing }

// any tells whether one that stands so is such a part.
func (l layers) any(is standing, such func(part) bool) bool {
	for p, one := range l {
		if one.is == is && such(part(p)) {
			return true
		}
	}
	return false
}

// list is what the log has of those that stand so.
func (l layers) list(is standing) (words []string) {
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

// closed is the layers of a process that was told how to close it, and says what it came to.
func (l layers) closed(how ipc.Seal, s security.Sealed) layers {
	filter, denied := s.Words()
	switch {
	case l[callFilter].is == isOff:
	case s.Filter && !s.Audit:
		l[callFilter] = layer{is: isOn, as: filter}
	default:
		l[callFilter] = found(errNoFilter)
	}
	l[landlock] = layer{is: isOn, as: denied}
	if s.Landlock == 0 {
		l[landlock] = found(errNoLandlock)
	}
	if how&ipc.SealUnix != 0 && s.Denies&security.DeniesTCP == 0 {
		l[landlockTCP] = found(errNoTCP)
	}
	return l
}
