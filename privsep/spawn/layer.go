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
	numParts // how many there are
)

// parts describes each part. It is used for the log, for --check-confinement,
// for require_confinement, and for the namespaces that each process expects.
var parts = [numParts]struct {
	name              string
	unprivilegedState string  // the part's state (from package ipc) if it is missing after a start without root; "": ipc.PartMissing
	flag              uintptr // flag of the part, if it is a namespace
	link              string  // its link in /proc/PID/ns
}{
	descriptorTable:  {name: "descriptor table of their own"},
	userNamespace:    {name: "user namespace", flag: unix.CLONE_NEWUSER, link: "user"}, // each process gets its own; a single thread can't enter one
	ipcNamespace:     {name: "IPC namespace", flag: unix.CLONE_NEWIPC, link: "ipc"},
	networkNamespace: {name: "network namespace", flag: unix.CLONE_NEWNET, link: "net"},
	ownRoot:          {name: "root of their own", unprivilegedState: ipc.PartUnpermitted, flag: unix.CLONE_NEWNS, link: "mnt"},
	pidNamespace:     {name: "PID namespace", unprivilegedState: ipc.PartUnpermitted, flag: unix.CLONE_NEWPID, link: "pid"},
	emptyBounding:    {name: "empty capability bounding set", unprivilegedState: ipc.PartUnpermitted},
	noNewPrivs:       {name: "no_new_privs"},
	noGroups:         {name: "dropping of supplementary groups", unprivilegedState: ipc.PartOfRoot},
}

// partStates holds the state of each part. An empty state means that there is
// nothing to report about the part, or that its state is not known yet.
type partStates [numParts]ipc.Part

// setState records the state of a part. If err is nil, the part is on.
// Otherwise it is missing because of err.
func (s *Spawner) setState(p part, err error) {
	state := &s.states[p]
	switch state.State, state.Reason = ipc.PartOn, ""; {
	case err != nil && s.Root:
		state.State, state.Reason = ipc.PartMissing, err.Error()
	case err != nil:
		state.State, state.Reason = cmp.Or(parts[p].unprivilegedState, ipc.PartMissing), err.Error()
	}
}

// coversAll reports whether all parts that are on in other are also on in l.
func (l partStates) coversAll(other partStates) bool {
	for p := range l {
		if other[p].State == ipc.PartOn && l[p].State != ipc.PartOn {
			return false
		}
	}
	return true
}

var (
	errUnconfined = errors.New("this build has no sandbox, for measurements")
	errNoUserNS   = errors.New(ipc.NoUserNamespace)
)
