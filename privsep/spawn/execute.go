package spawn

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/become/stage"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// start starts a process with channel as its descriptor 3 and log as its descriptor 2.
// After a start without root the process inherits the identity of the user who started
// the gateway.
func (s *Spawner) start(b Spec, channel, log int) (p *Process, err error) {
	if !s.Do(func() { p, err = s.execute(b, channel, log) }) { // a signal ended the start that this belongs to
		return nil, errs.New(errs.Unavailable, "the gateway is stopping")
	}
	return p, err
}

// execute implements start on the thread that processes inherit from.
func (s *Spawner) execute(b Spec, channel, log int) (*Process, error) {
	pidfd := -1
	sys := &syscall.SysProcAttr{
		Unshareflags: s.flags,
		Setsid:       true, // so that a Ctrl-C at the terminal reaches only the parent, which drains
		PidFD:        &pidfd,
	}
	if s.first == nil {
		sys.Pdeathsig = syscall.SIGKILL // package syscall would take a parent that the process can't see for a dead one
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
		failed = errs.New(errs.Unsupported, "this kernel has no pidfd; use Linux 5.3 or later")
	}
	if failed != nil { // this process can be traced, with its keys, or the child can't be waited for
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

// environ returns a process's whole environment. It has no variable of the user who
// started the gateway.
func environ(threads int) []string {
	return []string{
		fmt.Sprintf("GOMAXPROCS=%d", threads),
		"GODEBUG=containermaxprocs=0,updatemaxprocs=0", // otherwise the runtime keeps cgroup files open
	}
}

// OutOfTheWay returns program at a number well above files. Before the child executes,
// it puts files in their places and its own pipe at the next numbers, over any
// descriptor there.
func OutOfTheWay(program *os.File, files []uintptr) (fd int, err error) {
	least := int(slices.Max(files)) + 1 + 1 + len(files)
	fd, err = unix.FcntlInt(program.Fd(), unix.F_DUPFD_CLOEXEC, least)
	return fd, errs.Wrap(err, errs.Internal, "duplicate the descriptor of %s", program.Name())
}

// expect returns the attributes that a process must have, as far as the parent knows
// them. It does not check the namespaces that a process made for itself. Only root can
// ask the kernel about a process whose program the caller can't read, such as an
// installed one.
func (s *Spawner) expect(b Spec) *ipc.Attributes {
	a := &ipc.Attributes{UID: b.Who.UID, GID: b.Who.GID, Groups: b.Who.Groups, Foreign: s.nest != nil, Bounding: s.inherited.Bounding, Seccomp: s.inherited.Seccomp}
	switch {
	case s.nest.settles():
		a.Bounding = security.Capabilities(0).String()
	case s.nest != nil:
		a.Bounding = security.AllCapabilities().String() // over nothing but its own namespaces, and no_new_privs keeps it from them
	}
	if b.Role == ipc.Auditor || b.Role == ipc.Dispatcher { // these roles write files
		var l unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_FSIZE, &l)
		a.FileSize, a.MaxSize = l.Cur, l.Max
	}
	own := map[string]bool{}
	for _, p := range parts {
		own[p.link] = s.nest.has(p.flag)
	}
	for link, id := range s.inherited.Namespaces {
		a.Namespaces = append(a.Namespaces, ipc.Namespace{Type: link, ID: id, Other: own[link]})
	}
	return a
}

const (
	// idleThreads is how many threads a process may have in addition to those
	// that run concurrently.
	idleThreads = 64
	// MostOfUser limits the processes and threads of a user when one more starts in the
	// user's worker. The user may have processes of other programs, as nobody and users
	// of become_user do. The limit keeps a compromised worker from using up all
	// processes.
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
