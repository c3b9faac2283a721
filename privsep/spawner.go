package privsep

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/become"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// spawner starts every worker from one thread, locked for ever. The thread has entered
// the IPC namespace, emptied its bounding set and taken no_new_privs once; each worker
// inherits that at no cost, before its first instruction. It must not end while
// workers live: their death signal hangs on the thread.
type spawner struct {
	root      bool    // identities can be changed
	flags     uintptr // what each worker unshares between fork and exec
	program   *os.File
	argv      []string
	inherited security.Inheritance
	missing   []string      // parts of the cage that can't be had here
	number    atomic.Uint32 // of the last worker, whatever its identity
	jobs      chan func()
	over      chan struct{} // closed by stop
}

// startSpawner prepares the thread. Whatever capability that needs is dropped after it.
func startSpawner(c Config, root bool, program *os.File) (*spawner, error) {
	s := &spawner{root: root, program: program, argv: c.Argv, jobs: make(chan func()), over: make(chan struct{})}
	if !c.Switches.DisableUnshareFiles {
		s.flags |= unix.CLONE_FILES
	}
	if !c.Switches.DisableUnshareSysV {
		s.flags |= unix.CLONE_SYSVSEM
	}
	ready := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		err := s.diverge(!c.Switches.DisableUnshareSysV)
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
	}()
	return s, <-ready
}

// environ is a process's whole environment: no variable of the starter's reaches it.
func environ(threads int) []string {
	return []string{
		fmt.Sprintf("GOMAXPROCS=%d", threads),
		"GODEBUG=containermaxprocs=0,updatemaxprocs=0", // else the runtime keeps cgroup files open
	}
}

// diverge makes the calling thread the one that workers inherit from. What a start
// without root can't have is noted in missing.
func (s *spawner) diverge(sysv bool) error {
	held, err := security.Held()
	if err != nil {
		return err
	}
	switch {
	case !sysv: // switched off: not something that is missing
	case !held.Has(unix.CAP_SYS_ADMIN):
		s.missing = append(s.missing, "IPC namespace")
	default:
		if err := unix.Unshare(unix.CLONE_NEWIPC); err != nil {
			return errs.Wrap(err, errs.Internal, "enter an IPC namespace")
		}
	}
	dropped, err := security.DropBounding()
	if err != nil {
		return err
	}
	if !dropped {
		s.missing = append(s.missing, "empty capability bounding set")
	}
	if err := security.NoNewPrivsThread(); err != nil {
		return err
	}
	s.inherited, err = security.Inherited()
	return err
}

// expect is the posture that a worker of who must find itself in.
func (s *spawner) expect(who security.Identity, files uint64) ipc.Posture {
	var p ipc.Posture
	for name, value := range security.Expect(security.Cage{Identity: who, Inherited: s.inherited, Files: files}) {
		p.Facts = append(p.Facts, ipc.Fact{Name: name, Value: value})
	}
	return p
}

// start starts a process with descriptor channel as its 3 and log as its 2. Started
// without root there is one identity only, the starter's, and it is inherited.
func (s *spawner) start(b birth, channel, log int) (pid, pidfd int, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, -1, errs.Wrap(err, errs.Internal, "start a %s", b.role)
	}
	defer null.Close()
	pidfd = -1
	sys := &syscall.SysProcAttr{
		Unshareflags: s.flags,
		Setsid:       true, // a Ctrl-C at the terminal is for the parent, which drains
		Pdeathsig:    syscall.SIGKILL,
		PidFD:        &pidfd,
	}
	if s.root {
		// Set between fork and exec, so that no instruction of the worker runs as root.
		sys.Credential = become.Credential(b.who.UID, b.who.GID, nil)
	}
	attr := &syscall.ProcAttr{
		Dir:   "/",
		Env:   environ(b.threads),
		Files: []uintptr{null.Fd(), null.Fd(), uintptr(log), uintptr(channel)},
		Sys:   sys,
	}
	program, err := outOfTheWay(b.program, attr.Files)
	if err != nil {
		return 0, -1, err
	}
	defer unix.Close(program)
	path := fmt.Sprintf("/proc/self/fd/%d", program) // resolved in the child
	done := make(chan struct{})
	job := func() {
		defer close(done)
		pid, _, err = syscall.StartProcess(path, b.argv, attr)
	}
	select {
	case s.jobs <- job:
		<-done
	case <-s.over: // a signal ended the start that this belongs to
		return 0, -1, errs.New(errs.Unavailable, "no process starts while the gateway stops")
	}
	if err == nil && pidfd < 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return 0, -1, errs.New(errs.Unsupported, "this kernel has no pidfd: Linux 5.3 or later is needed")
	}
	return pid, pidfd, errs.Wrap(err, errs.Internal, "start %s", b.program.Name())
}

// outOfTheWay is program at a number well above files. Before it executes, the child puts those in their
// places and its own pipe at the next numbers, whatever is there.
func outOfTheWay(program *os.File, files []uintptr) (fd int, err error) {
	least := int(slices.Max(files)) + 1 + 1 + len(files)
	fd, err = unix.FcntlInt(program.Fd(), unix.F_DUPFD_CLOEXEC, least)
	return fd, errs.Wrap(err, errs.Internal, "keep %s open for a start", program.Name())
}

// stop ends the thread, and with it whatever worker is left.
func (s *spawner) stop() { close(s.over) }
