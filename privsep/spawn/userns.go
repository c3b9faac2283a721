package spawn

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/security"
	"schedrestd/security/root"
)

// Who may not make namespaces where he is, an ordinary user or a root without CAP_SYS_ADMIN, puts each process into a user namespace
// of its own, where the kernel lets him: in it the process may make the others, and a root. The ids stay what
// they are, so that munged and the kernel say of a worker what they would without.

// nest is what a process has with a user namespace of its own.
type nest struct {
	flags uintptr // namespaces
	born  string  // what it has its capabilities for (root.Variable); "": it has none
}

// nests is what is tried, the best first: kernels, containers and security modules differ.
var nests = []nest{
	{least | unix.CLONE_NEWNS | unix.CLONE_NEWPID, root.ForRoot},
	{least | unix.CLONE_NEWPID, root.ForNone},
	{least, root.ForNone},
	{least, ""},
}

const least = unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWIPC

func (n *nest) has(flag uintptr) bool { return n != nil && n.flags&flag != 0 }

// settles tells whether each process empties its bounding set.
func (n *nest) settles() bool { return n != nil && n.born != "" }

func (n *nest) environ() []string {
	if !n.settles() {
		return nil
	}
	return []string{root.Variable + "=" + n.born}
}

// put has a process be born in such namespaces. Who is not root can set no supplementary groups there.
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

// findNest tries what such a process can have, with one that closes its cage and ends; nil is nothing, or that none is needed. Why
// others could not be had is left in s.denied.
func (s *Spawner) findNest(held security.Capabilities) *nest {
	if !security.Caged || s.Root && (held.Has(unix.CAP_SYS_ADMIN) || s.Switches.DisableUserCheck) { // uid 0 can be put into none
		return nil
	}
	for i := range nests {
		if s.nest = &nests[i]; s.nest.has(unix.CLONE_NEWNS) && s.sharedRoot {
			continue
		}
		one, err := s.startFirst(s.Identity)
		if err == nil {
			one.stop()
			return s.nest
		}
		s.deny(err)
	}
	return nil
}

// deny notes for what the nest that is tried has why it can't be had.
func (s *Spawner) deny(err error) {
	if sys, ok := errors.AsType[unix.Errno](err); ok {
		err = sys // of what was being done only that is news
	}
	for p, row := range parts {
		if s.nest.has(row.flag) || part(p) == emptyBounding && s.nest.settles() {
			s.denied[p] = err
		}
	}
}

// showForStart makes this process dumpable until the function that it returns. The maps of ids are files
// in the /proc of a child that is about to execute, and as long as it has a memory in common with a process that is not
// dumpable they are root's. Who could use the moment is of the same uid as this process, and in no cage.
func showForStart() (hide func() error) {
	before, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil || before == 1 {
		return func() error { return nil }
	}
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)
	return security.HideFromNeighbours
}

// ofUserNamespace is what a process in namespaces of its own has beside what it inherited. Which they are is not
// asked: the kernel tells nobody but root of a process whose program he can't read, as an installed one is.
func (s *Spawner) ofUserNamespace() security.Inheritance {
	i := s.inherited
	i.Namespaces = maps.Clone(i.Namespaces)
	for _, p := range parts {
		if s.nest.has(p.flag) {
			i.Namespaces[p.link] = security.Not(i.Namespaces[p.link])
		}
	}
	i.Bounding = security.AllCapabilities().String() // over nothing but its own namespaces, and no_new_privs keeps it from them
	if s.nest.settles() {
		i.Bounding = security.Capabilities(0).String()
	}
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
