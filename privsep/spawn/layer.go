package spawn

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

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

// layers is what became of each part.
type layers [allParts]layer

// layer is the state of one part. The zero value needs no mention: it is the
// normal state, or not known yet.
type layer struct {
	is  string // PartOn, PartOff or PartMissing of package ipc
	as  string // what the log calls it instead of its name, when it is on
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
	errUnconfined = errors.New("this build is for measuring")
	errNoNest     = errors.New("without a user namespace")
	errNoFilter   = errors.New("the process has none that kills")
	errNoLandlock = errors.New("this kernel has none, or lsm= does not name it: Linux 5.13")
	errNoTCP      = errors.New("workers connect UNIX sockets, and this kernel's knows no TCP: Linux 6.7")
)

// closed returns the layers of a process that received how to close the
// sandbox, and reported the result.
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
