package spawn

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/security"
	"schedrestd/security/root"
)

// A parent without CAP_SYS_ADMIN may not create namespaces. If the kernel
// permits it, such a parent puts each process into a user namespace of its own.
// There the process may create the other namespaces and a root of its own. The
// ids stay the same, so that munged and the kernel identify a worker as they
// would without this namespace.

// nest is the setup of a process with a user namespace of its own.
type nest struct {
	flags uintptr // flags of its namespaces
	born  string  // why the process starts with capabilities (root.Variable); "": it starts with none
}

// nests lists the setups to try, the best first. Kernels, containers and
// security modules differ in what they permit.
var nests = []nest{
	{least | unix.CLONE_NEWNS | unix.CLONE_NEWPID, root.ForRoot},
	{least | unix.CLONE_NEWPID, root.ForNone},
	{least, root.ForNone},
	{least, ""},
}

const least = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWIPC

func (n *nest) has(flag uintptr) bool { return n != nil && n.flags&flag != 0 }

// settles reports whether each process empties its own bounding set.
func (n *nest) settles() bool { return n != nil && n.born != "" }

func (n *nest) environ() []string {
	if !n.settles() {
		return nil
	}
	return []string{root.Variable + "=" + n.born}
}

// put makes a process start in the namespaces of n. If asRoot is not set, the
// process can't set supplementary groups there.
func (n *nest) put(sys *syscall.SysProcAttr, who security.Identity, asRoot bool) {
	uid, gid := int(who.UID), int(who.GID)
	if !asRoot {
		uid, gid = os.Getuid(), os.Getgid()
	}
	sys.Cloneflags |= n.flags
	sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	sys.GidMappingsEnableSetgroups = asRoot
	if n.settles() {
		sys.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP} // these apply to its own namespaces only
	}
	if asRoot {
		sys.AmbientCaps = append(sys.AmbientCaps, unix.CAP_SETUID, unix.CAP_SETGID) // the stage gives them up
	}
}

// showForStart makes this process dumpable until the returned function is
// called. It is called for the start of a child: this process has to write the
// child's id maps, which are files in /proc, before the child executes its
// program. Until then the child shares this process's memory, and if that is
// not dumpable, the files belong to root. Meanwhile only a process with the
// same uid and outside of any sandbox could attack this process.
func showForStart() (hide func() error) {
	before, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil || before == 1 {
		return func() error { return nil }
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	return security.HideFromNeighbours
}
