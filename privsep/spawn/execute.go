package spawn

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/become/stage"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// start starts a process with descriptor channel as its 3 and log as its 2. Started
// without root there is one identity only, the starter's, and it is inherited.
func (s *Spawner) start(b Spec, channel, log int) (p *Process, err error) {
	if !s.Do(func() { p, err = s.execute(b, channel, log) }) { // a signal ended the start that this belongs to
		return nil, errs.New(errs.Unavailable, "no process starts while the gateway stops")
	}
	return p, err
}

// execute implements start on the thread that processes inherit from.
func (s *Spawner) execute(b Spec, channel, log int) (*Process, error) {
	pidfd := -1
	sys := &syscall.SysProcAttr{
		Unshareflags: s.flags,
		Setsid:       true, // a Ctrl-C at the terminal is for the parent, which drains
		PidFD:        &pidfd,
	}
	if s.first == nil {
		sys.Pdeathsig = syscall.SIGKILL // package syscall would take a parent out of sight for a dead one
	}
	if s.nest != nil {
		s.nest.put(sys, b.Who, s.Root)
	}
	attr := &syscall.ProcAttr{
		Dir:   "/",
		Env:   append(environ(b.Threads), s.nest.environ()...),
		Files: []uintptr{s.null.Fd(), s.null.Fd(), uintptr(log), uintptr(channel)},
		Sys:   sys,
	}
	if b.Out != nil {
		attr.Files[1] = b.Out.Fd()
	}
	path, argv := s.space.Path(b.Program), b.Argv
	switch {
	case s.Root:
		// Not one instruction of the process runs as root, and its user can't stop this thread: see package stage.
		if path == "" {
			path = stage.File(len(attr.Files))
			attr.Files = append(attr.Files, b.Program.Fd())
		}
		target := stage.Target{UID: b.Who.UID, GID: b.Who.GID, DeathSignal: sys.Pdeathsig, Path: path, Argv: argv, Env: attr.Env}
		if b.Quiet {
			target.Report = uint32(len(attr.Files))
			attr.Files = append(attr.Files, s.null.Fd())
		}
		path = cmp.Or(s.space.Path(s.stage), stage.Program) // there may be no /proc yet
		argv, attr.Env = target.Command()
	case path == "":
		program, err := OutOfTheWay(b.Program, attr.Files)
		if err != nil {
			return nil, err
		}
		defer unix.Close(program)
		path = stage.File(program) // resolved in the child
	}
	hide := func() error { return nil }
	if s.nest != nil {
		hide = showForStart()
	}
	pid, _, err := syscall.StartProcess(path, argv, attr)
	failed := hide()
	if failed == nil && err == nil && pidfd < 0 {
		failed = errs.New(errs.Unsupported, "this kernel has no pidfd: Linux 5.3 or later is needed")
	}
	if failed != nil { // this process can be traced, keys and all; or the child can't be waited for
		if err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return nil, failed
	}
	if err != nil {
		return nil, errs.Wrap(noProcess(b.Program.Name(), err), errs.Internal, "start %s", b.Program.Name())
	}
	return newProcess(b.Role.String(), pid, pidfd), nil
}

// environ returns a process's whole environment: no variable of the starter's reaches it.
func environ(threads int) []string {
	return []string{
		fmt.Sprintf("GOMAXPROCS=%d", threads),
		"GODEBUG=containermaxprocs=0,updatemaxprocs=0", // otherwise the runtime keeps cgroup files open
	}
}

// OutOfTheWay returns program at a number well above files. Before it executes, the
// child puts those in their places and its own pipe at the next numbers, whatever is there.
func OutOfTheWay(program *os.File, files []uintptr) (fd int, err error) {
	least := int(slices.Max(files)) + 1 + 1 + len(files)
	fd, err = unix.FcntlInt(program.Fd(), unix.F_DUPFD_CLOEXEC, least)
	return fd, errs.Wrap(err, errs.Internal, "keep %s open for a start", program.Name())
}

// expect returns the attributes that a process must have.
func (s *Spawner) expect(b Spec, tasks uint64) (p ipc.Attributes) {
	expected := security.Expectation{Identity: b.Who, Writes: b.Role == ipc.Auditor || b.Role == ipc.Dispatcher, Inherited: s.inherited, Files: b.Files, Tasks: tasks}
	if s.nest != nil {
		expected.Inherited = s.ofUserNamespace()
	}
	want := security.Expect(expected)
	if s.nest != nil {
		want["groups"] = munged(b.Who)
	}
	for name, value := range want {
		p.Facts = append(p.Facts, ipc.Fact{Name: name, Value: value})
	}
	return p
}

// ofUserNamespace returns the attributes of a process in namespaces of its own,
// which it has in addition to the inherited ones. It does not check which
// namespaces these are: only root can ask the kernel about a process whose
// program the caller can't read, such as an installed one.
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

// munged returns the groups of the identity as the kernel shows them in such a
// namespace: sorted by number, and unmapped groups as the overflow id.
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

const (
	// idleThreads is how many threads a process may have in addition to those
	// that run concurrently.
	idleThreads = 64
	// MostOfUser is how many processes and threads a user may have who starts
	// one more in their worker. They may have processes of other programs, as
	// nobody and users of become_user do. The limit keeps a compromised worker
	// from using up all processes.
	MostOfUser = 4096
)

// tasks returns the limit of processes and threads for a process with so many
// threads that run concurrently. The kernel counts by user, and since Linux
// 5.14 by user and user namespace.
func (s *Spawner) tasks(threads int) uint64 {
	if s.nest != nil && security.KernelSince(5, 14) {
		return uint64(threads + idleThreads)
	}
	var own unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &own) != nil {
		return MostOfUser
	}
	return min(MostOfUser, own.Max)
}
