package spawn

import (
	"errors"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
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
	allParts // how many there are
)

// parts describes each part. The table has the log's words, the rows of
// --check-confinement, the parts that require_confinement requires, and the namespaces
// in which processes must find themselves.
var parts = [allParts]struct {
	name   string
	lacked string  // a word of package ipc for how a start without root may lack the part; "": every start has it
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
}

// layers holds the state of each part.
type layers [allParts]layer

// layer is the state of one part. The zero value stands for the normal state, or for a
// state that is not known yet.
type layer struct {
	is  string // PartOn, PartOff or PartMissing of package ipc
	why error  // why the part is not on
}

// found returns the layer of a part that is on, or of one that is missing because of
// err.
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

var (
	errUnconfined = errors.New("this build has no sandbox, for measurements")
	errNoNest     = errors.New(ipc.NoUserNamespace)
)
