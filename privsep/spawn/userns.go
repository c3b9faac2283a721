package spawn

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/security"
	"schedrestd/security/root"
)

// A parent without CAP_SYS_ADMIN may not create namespaces. If the kernel
// permits it, such a parent puts each process into its own user namespace, in
// which the process may create other namespaces and its own root directory. The
// ids stay the same, so that munged and the kernel identify a worker as they
// would without the user namespace.

// userNSSetup describes how a process with its own user namespace starts.
type userNSSetup struct {
	flags       uintptr // flags of its namespaces
	capsPurpose string  // why the process starts with capabilities (root.CapsVariable); "": it starts with none
}

// userNSSetups lists the setups to try, beginning with the best. Kernels,
// containers and security modules differ in which of them they permit.
var userNSSetups = []userNSSetup{
	{minFlags | unix.CLONE_NEWNS | unix.CLONE_NEWPID, root.CapsForRoot},
	{minFlags | unix.CLONE_NEWPID, root.CapsForNone},
	{minFlags, root.CapsForNone},
	{minFlags, ""},
}

const minFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWIPC

func (n *userNSSetup) hasFlag(flag uintptr) bool { return n != nil && n.flags&flag != 0 }

// emptiesBounding reports whether each process empties its own bounding set.
func (n *userNSSetup) emptiesBounding() bool { return n != nil && n.capsPurpose != "" }

// apply changes attr so that a process starts in the namespaces of n. If asRoot
// is true, root starts the process, and the stage then changes the process's
// identity to the given one. Otherwise the process keeps the identity of the
// parent, and can't set supplementary groups.
func (n *userNSSetup) apply(attr *syscall.ProcAttr, identity security.Identity, asRoot bool) {
	uid, gid := int(identity.UID), int(identity.GID)
	if !asRoot {
		uid, gid = os.Getuid(), os.Getgid()
	}
	sys := attr.Sys
	sys.Cloneflags |= n.flags
	sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	sys.GidMappingsEnableSetgroups = asRoot
	if n.emptiesBounding() {
		attr.Env = append(attr.Env, root.CapsVariable+"="+n.capsPurpose)
		sys.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP} // these apply to its own namespaces only
	}
	if asRoot {
		sys.AmbientCaps = append(sys.AmbientCaps, unix.CAP_SETUID, unix.CAP_SETGID) // the stage gives them up
	}
}

// makeDumpableForStart makes this process dumpable until the returned function
// is called. This is necessary to start a child in a user namespace: this
// process has to write the child's id maps, which are files in /proc, before
// the child executes its program. Until then the child shares this process's
// memory. If that memory is not dumpable, the files belong to root. While this
// process is dumpable, it can be attacked only by a process that has the same
// uid and no sandbox.
func makeDumpableForStart() (restore func() error) {
	previous, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil || previous == 1 {
		return func() error { return nil }
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	return security.MakeNonDumpable
}
