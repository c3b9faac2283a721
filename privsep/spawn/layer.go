package spawn

import (
	"cmp"
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

// layers holds the state of each part. An empty state stands for the normal one, or for
// one that is not known yet.
type layers [allParts]ipc.Part

// set records that a part is on, or that it is missing because of err.
func (s *Spawner) set(p part, err error) {
	one := &s.layers[p]
	switch one.Is = ipc.PartOn; {
	case err != nil && s.Root:
		one.Is, one.Why = ipc.PartMissing, err.Error()
	case err != nil:
		one.Is, one.Why = cmp.Or(parts[p].lacked, ipc.PartMissing), err.Error()
	}
}

// coversAll reports whether everything that is on in other is on in l.
func (l layers) coversAll(other layers) bool {
	for p := range l {
		if other[p].Is == ipc.PartOn && l[p].Is != ipc.PartOn {
			return false
		}
	}
	return true
}

var (
	errUnconfined = errors.New("this build has no sandbox, for measurements")
	errNoNest     = errors.New(ipc.NoUserNamespace)
)
