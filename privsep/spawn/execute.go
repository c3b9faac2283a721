package spawn

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/become/stage"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// start starts a process. Its descriptor 3 is channel, and its descriptor 2 is
// log. If the parent is not root, the process has the identity of the user who
// started the gateway.
func (s *Spawner) start(spec Spec, channel, log int) (p *Process, err error) {
	if !s.Do(func() { p, err = s.execute(spec, channel, log) }) { // a signal has ended the gateway's start
		return nil, errs.New(errs.Unavailable, "the gateway is stopping")
	}
	return p, err
}

// execute implements start. It must run on the Spawner's thread, because
// processes inherit their attributes from this thread.
func (s *Spawner) execute(spec Spec, channel, log int) (*Process, error) {
	pidfd := -1
	sys := &syscall.SysProcAttr{
		Unshareflags: s.unshareFlags,
		Setsid:       true, // so that a Ctrl-C at the terminal reaches only the parent, which then lets the processes finish their requests
		PidFD:        &pidfd,
	}
	if s.namespaceInit == nil {
		sys.Pdeathsig = syscall.SIGKILL // a process in the shared PID namespace can't see its parent, so package syscall would assume that the parent has died
	}
	attr := &syscall.ProcAttr{
		Dir:   "/",
		Env:   environ(spec.Threads),
		Files: []uintptr{s.null.Fd(), s.null.Fd(), uintptr(log), uintptr(channel)},
		Sys:   sys,
	}
	if s.userNS != nil {
		s.userNS.apply(attr, spec.Identity, s.Root)
	}
	if spec.Out != nil {
		attr.Files[1] = spec.Out.Fd()
	}
	path, argv := s.rootFS.Path(spec.Program), spec.Argv
	switch {
	case s.Root:
		// The child executes the stage, which changes the ids and then executes
		// the program. So no instruction of the program runs as root. While the
		// child shares this process's memory, it still has root's ids, so the
		// program's user can't stop it. Otherwise that user could suspend this
		// thread, too (see package stage).
		if path == "" {
			path = stage.File(len(attr.Files))
			attr.Files = append(attr.Files, spec.Program.Fd())
		}
		target := stage.Target{UID: spec.Identity.UID, GID: spec.Identity.GID, Groups: spec.Identity.Groups, DeathSignal: sys.Pdeathsig, Path: path, Argv: argv, Env: attr.Env}
		if spec.Quiet {
			target.Report = uint32(len(attr.Files))
			attr.Files = append(attr.Files, s.null.Fd())
		}
		path = cmp.Or(s.rootFS.Path(s.stage), stage.Program) // /proc may not be mounted yet
		argv, attr.Env = target.Command()
	case path == "":
		program, err := DupAbove(spec.Program, attr.Files)
		if err != nil {
			return nil, err
		}
		defer unix.Close(program)
		path = stage.File(program) // resolved in the child
	}
	restore := func() error { return nil }
	if s.userNS != nil {
		restore = makeDumpableForStart()
	}
	pid, _, err := syscall.StartProcess(path, argv, attr)
	failed := restore()
	if failed == nil && err == nil && pidfd < 0 {
		failed = errs.New(errs.Unsupported, "this kernel has no pidfd; use Linux 5.3 or later")
	}
	if failed != nil { // this process is still dumpable, so others could trace it and copy its open keys; or it has no pidfd to wait for the child
		if err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return nil, failed
	}
	if err != nil {
		return nil, errs.Wrap(explainStart(spec.Program.Name(), err), errs.Internal, "start %s", spec.Program.Name())
	}
	return newProcess(spec.Role.String(), pid, pidfd), nil
}

// environ returns the environment of a process. It contains no variables from
// the user who started the gateway.
func environ(threads int) []string {
	return []string{
		fmt.Sprintf("GOMAXPROCS=%d", threads),
		"GODEBUG=containermaxprocs=0,updatemaxprocs=0", // otherwise the runtime keeps cgroup files open
	}
}

// DupAbove duplicates the descriptor of program to a number well above those in
// files. Before the child executes the program, it moves the files to the
// numbers from 0 on, and the pipe for errors to a number after them. If the
// program's descriptor had one of these numbers, the child would overwrite it.
func DupAbove(program *os.File, files []uintptr) (fd int, err error) {
	minFD := int(slices.Max(files)) + 1 + 1 + len(files)
	fd, err = unix.FcntlInt(program.Fd(), unix.F_DUPFD_CLOEXEC, minFD)
	return fd, errs.Wrap(err, errs.Internal, "duplicate the descriptor of %s", program.Name())
}

// expectedAttributes returns the attributes that a process must have, as far as
// the parent knows them. The parent does not know the namespaces that a process
// creates for itself. It can't look them up either: the parent's user usually
// can't read the installed programs, and only root can examine a process of a
// program that is not readable.
func (s *Spawner) expectedAttributes(spec Spec) *ipc.Attributes {
	a := &ipc.Attributes{UID: spec.Identity.UID, GID: spec.Identity.GID, Groups: spec.Identity.Groups, OwnUserns: s.userNS != nil, Bounding: s.inherited.Bounding, Seccomp: s.inherited.Seccomp}
	switch {
	case s.userNS.emptiesBounding():
		a.Bounding = security.Capabilities(0).String()
	case s.userNS != nil:
		a.Bounding = security.AllCapabilities().String() // these capabilities apply only to the process's own namespaces, and no_new_privs keeps it from gaining them
	}
	if spec.Role == ipc.Auditor || spec.Role == ipc.Dispatcher || spec.Writes {
		var l unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_FSIZE, &l)
		a.FileSize, a.MaxSize = l.Cur, l.Max
	}
	ownNamespaces := map[string]bool{}
	for _, p := range parts {
		ownNamespaces[p.link] = s.userNS.hasFlag(p.flag)
	}
	for link, id := range s.inherited.Namespaces {
		a.Namespaces = append(a.Namespaces, ipc.Namespace{Type: link, ID: id, MustDiffer: ownNamespaces[link]})
	}
	return a
}

const (
	// idleThreads is the number of threads that a process may have in addition
	// to those that run concurrently.
	idleThreads = 64
	// MaxUserTasks limits the number of processes and threads of a worker's
	// user. If the user has this many, the worker can't start another thread.
	// The limit includes the user's other processes: with become_user, users
	// have processes of their own, and the account "nobody" may have some, too.
	// The limit keeps a compromised worker from using up all process ids of the
	// machine.
	MaxUserTasks = 4096
)

// maxTasks returns the limit on processes and threads for a process that has
// the given number of concurrent threads. The kernel compares this limit with
// the number of processes and threads that the process's user has. Since Linux
// 5.14, the kernel counts them separately in each user namespace. So if a
// process is in its own user namespace, its limit applies to this process only.
func (s *Spawner) maxTasks(threads int) uint64 {
	if s.userNS != nil && security.KernelSince(5, 14) {
		return uint64(threads + idleThreads)
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &limit) != nil {
		return MaxUserTasks
	}
	return min(MaxUserTasks, limit.Max)
}
