package spawn

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/security"
	"schedrestd/security/root"
)

// A parent that may not create namespaces, an ordinary user's or root's without
// CAP_SYS_ADMIN, puts each process into a user namespace of its own, if the
// kernel permits that. In it the process may create the other namespaces, and a
// root. The ids stay the same, so that munged and the kernel identify a worker
// as they would otherwise.

// nest is what a process has with a user namespace of its own.
type nest struct {
	flags uintptr // namespaces
	born  string  // what it has its capabilities for (root.Variable); "": it has none
}

// nests lists the setups to try, the best first: kernels, containers and
// security modules differ.
var nests = []nest{
	{least | unix.CLONE_NEWNS | unix.CLONE_NEWPID, root.ForRoot},
	{least | unix.CLONE_NEWPID, root.ForNone},
	{least, root.ForNone},
	{least, ""},
}

const least = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWIPC

func (n *nest) has(flag uintptr) bool { return n != nil && n.flags&flag != 0 }

// settles reports whether each process empties its bounding set.
func (n *nest) settles() bool { return n != nil && n.born != "" }

func (n *nest) environ() []string {
	if !n.settles() {
		return nil
	}
	return []string{root.Variable + "=" + n.born}
}

// put makes a process start in such namespaces. Unless this process is root, it
// can't set supplementary groups there.
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
		sys.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP} // over its own namespaces alone
	}
	if asRoot {
		sys.AmbientCaps = append(sys.AmbientCaps, unix.CAP_SETUID, unix.CAP_SETGID) // which the stage gives up
	}
}

// showForStart makes this process dumpable until the returned function is
// called. The maps of ids are files in the /proc of a child that is about to
// execute. As long as it shares its memory with a process that is not dumpable,
// they belong to root. Only a process with the same uid and outside of any
// sandbox could use that moment.
func showForStart() (hide func() error) {
	before, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil || before == 1 {
		return func() error { return nil }
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	return security.HideFromNeighbours
}
