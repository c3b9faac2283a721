// Package spawn starts the processes of the gateway, confined and as somebody
// without privileges, and waits for their deaths.
//
// All of them are started by one locked thread, a Spawner. The thread entered
// namespaces that hold nothing and gave up what it could; each process inherits
// that before its first instruction. The package reads nothing of what processes
// send but their log lines, which it bounds, escapes and prefixes.
package spawn

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become/stage"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/privsep/thread"
	"schedrestd/security"
	"schedrestd/security/root"
)

// Spawner starts every worker from one thread, locked for ever. The thread has entered
// namespaces that hold nothing, emptied its bounding set and taken no_new_privs once; each worker
// inherits that at no cost, before its first instruction. It must not end while
// workers live: their death signal hangs on the thread.
type Spawner struct {
	Options
	plain     bool    // its processes keep the machine's namespaces
	thread    int     // its id
	flags     uintptr // what each worker unshares between fork and exec
	null      *os.File
	stage     *os.File   // this program, which root executes to start the others
	space     *root.Root // their file system; nil: the machine's
	Anchor    *anchor    // of their PID namespace; nil: it is the machine's
	nest      *nest      // what each process has that is born in a user namespace of its own; nil: none is
	inherited security.Inheritance
	denied    [allParts]error // by the last nest that was tried for it
	layers    layers          // but for what processes do to themselves
	number    *atomic.Uint32  // of the last worker, whatever its identity
	next      *Spawner        // takes over when the PID namespace has ended; nil: none does
	jobs      chan func()
	over      chan struct{} // closed by stop
}

// Options is what a Spawner needs.
type Options struct {
	Root       bool              // identities can be changed
	Identity   security.Identity // of workers; without root the starter's
	Switches   security.Switches
	Seal       ipc.Seal      // how workers close their sandbox
	OneClient  bool          // it serves one client and ends
	PIDs       int           // most processes and threads in the PID namespace
	StartLimit time.Duration // for a process to report
	Worker     *os.File      // the worker's program
	Argv       []string      // … and its arguments
	Keeper     *os.File      // the keeper's program; nil: there is none
	Output     io.Writer     // for lines of processes
	Log        *slog.Logger

	sharedRoot bool // processes keep the machine's file system, for tests
}

// ToBecome is the capabilities that a change of identity takes.
var ToBecome = security.Caps(unix.CAP_SETUID, unix.CAP_SETGID)

// New prepares the thread. Whatever capability that needs is dropped after it.
func New(o Options) (*Spawner, error) {
	return new(Spawner).begin(o)
}

// NewPlain prepares a thread whose processes keep the machine's file system and network,
// which the resolver and the getent that it starts need.
func NewPlain(o Options) (*Spawner, error) {
	return (&Spawner{plain: true}).begin(o)
}

func (s *Spawner) begin(o Options) (*Spawner, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "prepare the start of workers")
	}
	own, err := unix.Open(stage.Program, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		null.Close()
		return nil, errs.Wrap(err, errs.Internal, "prepare the start of workers")
	}
	s.Options, s.null, s.stage = o, null, os.NewFile(uintptr(own), stage.Program)
	s.number, s.jobs, s.over = new(atomic.Uint32), make(chan func()), make(chan struct{})
	if !o.Switches.DisableUnshareFiles {
		s.flags |= unix.CLONE_FILES
	}
	if !o.Switches.DisableUnshareSysV {
		s.flags |= unix.CLONE_SYSVSEM
	}
	ready := make(chan error)
	go thread.Locked(func() { // locked, and never unlocked
		s.thread = unix.Gettid()
		err := s.diverge()
		ready <- err
		if err != nil {
			return
		}
		for {
			select {
			case job := <-s.jobs:
				job()
			case <-s.over:
				return
			}
		}
	})
	if err := <-ready; err != nil {
		return s, err
	}
	s.inherited, err = security.Inherited(s.thread) // which is not in the /proc that it sees itself
	return s, err
}

// Environ is a process's whole environment: no variable of the starter's reaches it.
func Environ(threads int) []string {
	return []string{
		fmt.Sprintf("GOMAXPROCS=%d", threads),
		"GODEBUG=containermaxprocs=0,updatemaxprocs=0", // else the runtime keeps cgroup files open
	}
}

// diverge makes the calling thread the one that workers inherit from. What a start
// without root can't have is noted in layers.
func (s *Spawner) diverge() error {
	held, err := security.Held()
	if err != nil {
		return err
	}
	if !s.plain {
		s.nest = s.findNest(held)
		for p := range allParts {
			s.layers[p] = s.enter(p, held)
		}
	}
	if s.Root {
		if err := security.PassCapabilities(ToBecome); err != nil {
			return err
		}
	}
	dropped, err := security.DropBounding()
	if err != nil {
		return err
	}
	if dropped && s.nest == nil || s.nest.settles() {
		err = nil
	} else {
		err = s.absent(emptyBounding)
	}
	s.layers[emptyBounding] = found(err)
	if err := security.NoNewPrivsThread(); err != nil {
		return err
	}
	s.layers[noNewPrivs] = found(nil)
	// A service manager that sets a group has it in the list, too.
	if !s.Root && slices.ContainsFunc(s.Identity.Groups, func(gid uint32) bool { return gid != s.Identity.GID }) {
		s.layers[noGroups] = found(unix.EPERM)
	}
	return nil
}

// enter has the calling thread enter p, where that is how it is had.
func (s *Spawner) enter(p part, held security.Capabilities) layer {
	byThread := p == ipcNamespace || p == networkNamespace || p == ownRoot || p == pidNamespace
	switch why := s.unasked(p); {
	case s.nest.has(parts[p].flag):
		return found(nil)
	case why != "":
		return layer{is: ipc.PartOff, why: errors.New(why)}
	case !byThread && s.denied[p] == nil:
		return layer{}
	case !security.Caged:
		return found(errUncaged)
	case !byThread, !held.Has(unix.CAP_SYS_ADMIN):
		return found(s.absent(p))
	case p == ownRoot:
		return found(s.enterRoot())
	case p == pidNamespace:
		return found(s.enterPIDs())
	}
	return found(unix.Unshare(int(parts[p].flag)))
}

// enterRoot moves the calling thread into a file system that has the programs and little else.
func (s *Spawner) enterRoot() error {
	space := root.New(map[string]*os.File{WorkerName: s.Worker, KeeperName: s.Keeper, stageName: s.stage})
	defer space.Close()
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return errs.Wrap(err, errs.Unsupported, "enter a mount namespace")
	}
	if err := space.Enter(); err != nil {
		return err
	}
	s.space = space
	return nil
}

// expect is the posture that a worker of who must find itself in.
func (s *Spawner) expect(b Birth, tasks uint64) (p ipc.Posture) {
	who := b.Who
	cage := security.Cage{Identity: who, Writes: b.Role == ipc.Auditor, Inherited: s.inherited, Files: b.Files, Tasks: tasks}
	if s.nest != nil {
		cage.Inherited = s.ofUserNamespace()
	}
	want := security.Expect(cage)
	if s.nest != nil {
		want["groups"] = munged(who)
	}
	for name, value := range want {
		p.Facts = append(p.Facts, ipc.Fact{Name: name, Value: value})
	}
	return p
}

// start starts a process with descriptor channel as its 3 and log as its 2. Started
// without root there is one identity only, the starter's, and it is inherited.
func (s *Spawner) start(b Birth, channel, log int) (pid, pidfd int, err error) {
	done := make(chan struct{})
	job := func() {
		defer close(done)
		pid, pidfd, err = s.execute(b, channel, log)
	}
	select {
	case s.jobs <- job:
		<-done
		return pid, pidfd, err
	case <-s.over: // a signal ended the start that this belongs to
		return 0, -1, errs.New(errs.Unavailable, "no process starts while the gateway stops")
	}
}

// Answer returns when the thread has nothing else to do, or is no longer needed.
func (s *Spawner) Answer() {
	select {
	case s.jobs <- func() {}:
	case <-s.over:
	}
}

// execute is start on the thread that processes inherit from.
func (s *Spawner) execute(b Birth, channel, log int) (pid, pidfd int, err error) {
	pidfd = -1
	sys := &syscall.SysProcAttr{
		Unshareflags: s.flags,
		Setsid:       true, // a Ctrl-C at the terminal is for the parent, which drains
		PidFD:        &pidfd,
	}
	if s.Anchor == nil {
		sys.Pdeathsig = syscall.SIGKILL // package syscall would take a parent out of sight for a dead one
	}
	if s.nest != nil {
		s.nest.put(sys, b.Who, s.Root)
	}
	attr := &syscall.ProcAttr{
		Dir:   "/",
		Env:   append(Environ(b.Threads), s.nest.environ()...),
		Files: []uintptr{s.null.Fd(), s.null.Fd(), uintptr(log), uintptr(channel)},
		Sys:   sys,
	}
	path, argv := s.space.Path(b.Program), b.Argv
	switch {
	case s.Root:
		// Not one instruction of the worker runs as root, and its user can't stop this thread: see package stage.
		if path == "" {
			path = stage.File(len(attr.Files))
			attr.Files = append(attr.Files, b.Program.Fd())
		}
		target := stage.Target{UID: b.Who.UID, GID: b.Who.GID, DeathSignal: sys.Pdeathsig, Path: path, Argv: argv, Env: attr.Env}
		path = cmp.Or(s.space.Path(s.stage), stage.Program) // there may be no /proc yet
		argv, attr.Env = target.Command()
	case path == "":
		program, err := OutOfTheWay(b.Program, attr.Files)
		if err != nil {
			return 0, -1, err
		}
		defer unix.Close(program)
		path = stage.File(program) // resolved in the child
	}
	hide := func() error { return nil }
	if s.nest != nil {
		hide = showForStart()
	}
	pid, _, err = syscall.StartProcess(path, argv, attr)
	if failed := hide(); failed != nil { // this process can be traced, keys and all
		if err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return 0, -1, failed
	}
	if err == nil && pidfd < 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return 0, -1, errs.New(errs.Unsupported, "this kernel has no pidfd: Linux 5.3 or later is needed")
	}
	return pid, pidfd, errs.Wrap(noProcess(b.Program.Name(), err), errs.Internal, "start %s", b.Program.Name())
}

// OutOfTheWay is program at a number well above files. Before it executes, the child puts those in their
// places and its own pipe at the next numbers, whatever is there.
func OutOfTheWay(program *os.File, files []uintptr) (fd int, err error) {
	least := int(slices.Max(files)) + 1 + 1 + len(files)
	fd, err = unix.FcntlInt(program.Fd(), unix.F_DUPFD_CLOEXEC, least)
	return fd, errs.Wrap(err, errs.Internal, "keep %s open for a start", program.Name())
}

// InUserNamespaces reports whether each process is born in a user namespace of its own.
func (s *Spawner) InUserNamespaces() bool { return s.nest != nil }

// Stop ends the thread, and with it whatever worker is left.
func (s *Spawner) Stop() {
	if s.next != nil {
		s.next.Stop()
	}
	s.Anchor.stop()
	close(s.over)
	s.null.Close()
	s.stage.Close()
}
