package privsep

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/ipc"
	"schedrestd/security"
)

// A gateway that was started without root puts each worker into a user namespace of its own, where the kernel
// lets ordinary users make them: it is what a network namespace takes that is empty. The ids stay what
// they are, so that munged and the kernel say of a worker what they would without.

// inUserNamespace has a process born in such a namespace. In it nobody can set supplementary groups.
func inUserNamespace(sys *syscall.SysProcAttr) {
	uid, gid := os.Getuid(), os.Getgid()
	sys.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWIPC
	sys.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	sys.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
}

// showForStart makes this process dumpable until the function that it returns. The maps of ids are files
// in the /proc of a child that is about to execute, and as long as it has a memory in common with a process that is not
// dumpable they are root's. Who could use the moment is of the same uid as this process, and in no cage.
func showForStart() (hide func()) {
	before, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil || before == 1 {
		return func() {}
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	return func() { _ = security.HideFromNeighbours() }
}

// mayMakeUsers tries whether a process can be started so: kernels, containers and security modules differ.
func (s *spawner) mayMakeUsers() bool {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fds[1])
	s.users = true
	b := birth{role: ipc.Worker, program: s.program, argv: append(s.argv[:len(s.argv):len(s.argv)], ipc.AnchorMode), threads: 1}
	pid, pidfd, err := s.execute(b, fds[1], fds[1])
	unix.Close(fds[0]) // and it ends
	if err != nil {
		return false
	}
	unix.Close(pidfd)
	_ = syscall.Kill(pid, syscall.SIGKILL)
	_, _ = syscall.Wait4(pid, nil, 0, nil)
	return true
}

// ofUserNamespace is what a process in namespaces of its own has beside what it inherited. Which they are is not
// asked: the kernel tells nobody but root of a process whose program he can't read, as an installed one is.
func (s *spawner) ofUserNamespace() security.Inheritance {
	i := s.inherited
	i.Namespaces = maps.Clone(i.Namespaces)
	for _, name := range []string{"user", "net", "ipc"} {
		i.Namespaces[name] = security.Not(i.Namespaces[name])
	}
	i.Bounding = security.AllCapabilities().String() // over nothing but its own namespaces, and no_new_privs keeps it from them
	return i
}

// munged is how the kernel shows the groups of who in such a namespace: by the order of their numbers,
// and those that are not mapped as the overflow id.
func munged(who security.Identity) string {
	groups := slices.Sorted(slices.Values(who.Groups))
	words := make([]string, len(groups))
	for i, gid := range groups {
		if gid != who.GID {
			gid = become.Overflow
		}
		words[i] = fmt.Sprint(gid)
	}
	return strings.Join(words, " ")
}
