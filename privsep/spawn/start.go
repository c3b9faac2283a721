package spawn

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/become/stage"
	"schedrestd/errs"
	"schedrestd/ipc"
	"schedrestd/security"
)

// Birth is what a process is started with.
type Birth struct {
	Role    ipc.Role
	Program *os.File
	Argv    []string
	Threads int // that run at one time
	Who     security.Identity
	Files   uint64 // limit of open descriptors
}

// Start starts a process with a channel and a log of its own, and sends it what setup
// returns, of which its limit of tasks is a part, and the attributes that it must find
// itself with. room bounds what it may log. The death of a process that ended before it
// could be told is found like that of any other. Where the PID namespace has ended, the
// process is started in the next one.
func (s *Spawner) Start(b Birth, room *Quota, setup func(p *Process, tasks uint64) ipc.Message) (*Process, error) {
	s = s.InUse()
	p, err := s.launch(b, room)
	if errors.Is(err, unix.ENOMEM) && s.isEnding() { // no process starts in a namespace that is ending
		if _, failed := s.Next(); failed == nil {
			return s.Start(b, room, setup)
		}
	}
	if err != nil {
		return nil, err
	}
	tasks := s.tasks(b.Threads)
	expect := s.expect(b, tasks)
	for _, m := range []ipc.Message{setup(p, tasks), &expect} {
		err := p.Channel.TrySend(m)
		if errors.Is(err, unix.EPIPE) || errors.Is(err, os.ErrClosed) {
			break
		}
		if err != nil {
			p.Reap(0)
			return nil, errs.Wrap(err, errs.Internal, "tell a %s what it needs", b.Role)
		}
	}
	return p, nil
}

// launch starts a process, and relays its log.
func (s *Spawner) launch(b Birth, room *Quota) (*Process, error) {
	channel, theirs, err := ipc.Pair(ipc.Parent, b.Role)
	if err != nil {
		return nil, err
	}
	defer unix.Close(theirs) // a copy kept here would hide the death
	logRead, logWrite, err := Pipe()
	if err != nil {
		channel.Close()
		return nil, err
	}
	defer unix.Close(logWrite)
	p, err := s.start(b, theirs, logWrite)
	if err != nil {
		channel.Close()
		logRead.Close()
		return nil, err
	}
	p.Number, p.Channel, p.log, p.silent = s.number.Add(1), channel, logRead, make(chan struct{})
	go func() {
		<-p.Dead
		// A process that this one left behind may hold the channel open.
		time.AfterFunc(LastWords, func() { channel.Close() })
	}()
	go p.relay(label(b.Role, p.Number, p.PID, b.Who.UID), output{s.Output}, room)
	return p, nil
}

// start starts a process with descriptor channel as its 3 and log as its 2. Started
// without root there is one identity only, the starter's, and it is inherited.
func (s *Spawner) start(b Birth, channel, log int) (p *Process, err error) {
	if !s.Do(func() { p, err = s.execute(b, channel, log) }) { // a signal ended the start that this belongs to
		return nil, errs.New(errs.Unavailable, "no process starts while the gateway stops")
	}
	return p, err
}

// execute is start on the thread that processes inherit from.
func (s *Spawner) execute(b Birth, channel, log int) (*Process, error) {
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
		Env:   append(Environ(b.Threads), s.nest.environ()...),
		Files: []uintptr{s.null.Fd(), s.null.Fd(), uintptr(log), uintptr(channel)},
		Sys:   sys,
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
	if failed != nil { // this process can be traced, keys and all; or that one can't be waited for
		if err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		return nil, failed
	}
	if err != nil {
		return nil, errs.Wrap(noProcess(b.Program.Name(), err), errs.Internal, "start %s", b.Program.Name())
	}
	return newProcess(b, pid, pidfd), nil
}

// Environ returns a process's whole environment: no variable of the starter's reaches it.
func Environ(threads int) []string {
	return []string{
		fmt.Sprintf("GOMAXPROCS=%d", threads),
		"GODEBUG=containermaxprocs=0,updatemaxprocs=0", // else the runtime keeps cgroup files open
	}
}

// OutOfTheWay returns program at a number well above files. Before it executes, the
// child puts those in their places and its own pipe at the next numbers, whatever is there.
func OutOfTheWay(program *os.File, files []uintptr) (fd int, err error) {
	least := int(slices.Max(files)) + 1 + 1 + len(files)
	fd, err = unix.FcntlInt(program.Fd(), unix.F_DUPFD_CLOEXEC, least)
	return fd, errs.Wrap(err, errs.Internal, "keep %s open for a start", program.Name())
}

// expect returns the attributes that a process must find itself with.
func (s *Spawner) expect(b Birth, tasks uint64) (p ipc.Posture) {
	cage := security.Cage{Identity: b.Who, Writes: b.Role == ipc.Auditor, Inherited: s.inherited, Files: b.Files, Tasks: tasks}
	if s.nest != nil {
		cage.Inherited = s.ofUserNamespace()
	}
	want := security.Expect(cage)
	if s.nest != nil {
		want["groups"] = munged(b.Who)
	}
	for name, value := range want {
		p.Facts = append(p.Facts, ipc.Fact{Name: name, Value: value})
	}
	return p
}
